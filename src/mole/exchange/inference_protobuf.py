"""The Open Inference Protocol's messages for gRPC, from a table of the published fields.

Nothing is generated: the table below is the protocol, and protobuf makes classes of it. Properties of a
network are sent as bytes, which is what text is on the wire: others put messages there.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from mole.exchange.inference_messages import LONGEST_ID, Message, Tensor, Value, check_sides
from mole.limits import MAX_TENSORS
from mole.storage.typed_json import FormatError

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"
METHODS = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")
_TENSOR = (
    "name:string datatype:string shape:int64* parameters:{InferParameter} contents:InferTensorContents"
)
_METADATA = "name:string datatype:string shape:int64*"
# Fields are numbered from 1 in this order; * is a list, {} a map from text.
TABLE = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "live:bool",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "ready:bool",
    "ModelReadyRequest": "name:string version:string",
    "ModelReadyResponse": "ready:bool",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "name:string version:string extensions:string*",
    "ModelMetadataRequest": "name:string version:string",
    "TensorMetadata": _METADATA,
    "ModelMetadataResponse": "name:string versions:string* platform:string inputs:TensorMetadata* "
    "outputs:TensorMetadata* properties:{bytes}",
    "InferParameter": "bool_param:bool int64_param:int64 string_param:string double_param:double",
    "InferTensorContents": "bool_contents:bool* int_contents:int32* int64_contents:int64* "
    "uint_contents:uint32* uint64_contents:uint64* fp32_contents:float* fp64_contents:double* "
    "bytes_contents:bytes*",
    "InferTensor": _TENSOR,
    "InferRequestedOutputTensor": "name:string parameters:{InferParameter}",
    "ModelInferRequest": "model_name:string model_version:string id:string parameters:{InferParameter} "
    "inputs:InferTensor* outputs:InferRequestedOutputTensor* raw_input_contents:bytes*",
    "ModelInferResponse": "model_name:string model_version:string id:string parameters:{InferParameter} "
    "outputs:InferTensor* raw_output_contents:bytes*",
}
CHOICES = {"InferParameter"}  # of whose fields a message has one


def _descriptor() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="mole/inference.proto", package=PACKAGE, syntax="proto3")
    for name, fields in TABLE.items():
        made = file.message_type.add(name=name)
        if name in CHOICES:
            made.oneof_decl.add(name="parameter_choice")
        for number, text in enumerate(fields.split(), start=1):
            field, kind = text.split(":")
            if kind.startswith("{"):
                entry = "".join(part.capitalize() for part in field.split("_")) + "Entry"
                inner = made.nested_type.add(name=entry)
                inner.options.map_entry = True
                _add(inner, 1, "key", "string")
                _add(inner, 2, "value", kind[1:-1])
                _add(made, number, field, f"{name}.{entry}*")
            else:
                _add(made, number, field, kind, choice=name in CHOICES)
    return file


def _add(message: Any, number: int, name: str, kind: str, *, choice: bool = False) -> None:
    field = message.field.add(name=name, number=number, label=3 if kind.endswith("*") else 1)
    simple = f"TYPE_{kind.rstrip('*').upper()}"
    if simple in descriptor_pb2.FieldDescriptorProto.Type.keys():  # noqa: SIM118  (no dictionary)
        field.type = descriptor_pb2.FieldDescriptorProto.Type.Value(simple)
    else:
        field.type, field.type_name = 11, f".{PACKAGE}.{kind.rstrip('*')}"
    if choice:
        field.oneof_index = 0


_POOL = descriptor_pool.DescriptorPool()  # of our own: others register the same names
_POOL.Add(_descriptor())
MESSAGES: dict[str, Any] = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
    for name in TABLE
}


def parse(name: str, content: bytes) -> Any:
    """A message of that name.

    Raises:
        FormatError: if it is none.
    """
    try:
        return MESSAGES[name].FromString(content)
    except (DecodeError, ValueError, RuntimeError):
        raise FormatError(f"it is no {name} of the protocol") from None


def to_request(message: Message, model: str) -> Any:
    """A request to a network, with its numbers as bytes."""
    made = MESSAGES["ModelInferRequest"](model_name=model, id=message.id)
    for tensor in message.tensors:
        made.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        made.raw_input_contents.append(tensor.floats().tobytes())
    for name, value in message.parameters.items():
        kind = {bool: "bool_param", int: "int64_param", float: "double_param"}.get(
            type(value), "string_param"
        )
        setattr(made.parameters[name], kind, value)
    for name in message.wanted:
        made.outputs.add(name=name)
    return made


def to_response(message: Message) -> Any:
    """An answer, with its numbers as bytes."""
    made = MESSAGES["ModelInferResponse"](model_name=message.model_name, id=message.id, model_version="1")
    for tensor in message.tensors:
        made.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        made.raw_output_contents.append(tensor.floats().tobytes())
    return made


def from_request(request: Any) -> Message:
    """What a request says.

    Raises:
        FormatError: if it does not follow the protocol.
    """
    tensors = _tensors(request.inputs, request.raw_input_contents)
    wanted = tuple(output.name for output in request.outputs)
    return Message(tensors, _id(request.id), _parameters(request.parameters), wanted, True)


def from_response(response: Any) -> Message:
    """What an answer says.

    Raises:
        FormatError: if it does not follow the protocol.
    """
    tensors = _tensors(response.outputs, response.raw_output_contents)
    parameters = _parameters(response.parameters)
    return Message(tensors, _id(response.id), parameters, model_name=response.model_name)


def _tensors(described: Any, raw: Any) -> tuple[Tensor, ...]:
    if max(len(described), len(raw)) > MAX_TENSORS:
        raise FormatError(f"it has more than {MAX_TENSORS} tensors")
    if raw and len(raw) != len(described):
        raise FormatError(f"it has {len(described)} tensors and raw contents of {len(raw)}")
    found = []
    for place, one in enumerate(described):
        if raw and one.contents.ListFields():  # an empty one is no other: MLServer sends it beside raw ones
            raise FormatError("it has raw contents and others: send one of them")
        content = raw[place] if raw else list(one.contents.fp32_contents)
        found.append(Tensor(one.name, one.datatype, check_sides(one.shape), content))
    return tuple(found)


def _parameters(found: Any) -> dict[str, Value]:
    kinds = {name: value.WhichOneof("parameter_choice") for name, value in found.items()}
    return {name: getattr(found[name], kind) for name, kind in kinds.items() if kind is not None}


def _id(text: str) -> str:
    if len(text) > LONGEST_ID:
        raise FormatError(f"its id has more than {LONGEST_ID} characters")
    return text
