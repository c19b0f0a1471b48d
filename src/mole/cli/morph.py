"""`mole morph`: further data under the same key."""

from functools import partial

from mole.cli.delivering import (
    DtypeOption,
    KeepOption,
    OutOption,
    ReplaceOption,
    SecondLayerOption,
    morphing,
    opener,
    signed_layer,
    tell,
)
from mole.cli.named_files import signing_key, warn_of_key_among
from mole.cli.options import (
    DataArgument,
    DepthOption,
    DeviceOption,
    IdentityOption,
    JsonOption,
    KeyOption,
    LayerOption,
    LayerSignerOption,
    ModeOption,
    PassphraseFileOption,
    QuietOption,
    RecipientOption,
    ResizeOption,
    SignOption,
    SkipBadOption,
    WindowOption,
    parse_depth,
    parse_window,
)
from mole.cli.protecting import (
    BitsOption,
    BudgetOption,
    ClipOption,
    EpsilonOption,
    FrontOption,
    SigmaOption,
    protection_asked_for,
)
from mole.provider import deliver as library
from mole.sources.opening import open_source


def morph(
    data: DataArgument,
    layer: LayerOption,
    key: KeyOption,
    out: OutOption = "requests",
    dtype: DtypeOption = "float32",
    mode: ModeOption = None,
    resize: ResizeOption = None,
    keep: KeepOption = None,
    skip_bad: SkipBadOption = False,
    window: WindowOption = None,
    depth: DepthOption = "8",
    front: FrontOption = None,
    bits: BitsOption = None,
    sigma: SigmaOption = None,
    epsilon: EpsilonOption = None,
    clip: ClipOption = 1.0,
    budget: BudgetOption = None,
    device: DeviceOption = None,
    recipient: RecipientOption = None,
    sign: SignOption = None,
    layer_signer: LayerSignerOption = None,
    allow_second_layer: SecondLayerOption = False,
    force: ReplaceOption = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Morph further data with the same key, for predictions: without labels or an augmented layer.

    Call again to resume interrupted work.
    """
    protect = protection_asked_for(front, bits, sigma, epsilon, clip, budget)
    warn_of_key_among([data], key, quiet=quiet)
    with morphing(out, replacing=force, quiet=quiet) as (progress, making):
        source = open_source(data, labels=False, window=parse_window(window), bits=parse_depth(depth))
        made = library.deliver(
            source, signed_layer(layer, layer_signer),
            opener(key, passphrase_file, identity, making), out,
            dtype=dtype, layer_dtype=None, mode=mode, resize=resize,
            keep=keep or (), skip_bad=skip_bad, labels=False, recipients=recipient or (),
            sign=partial(signing_key, sign), allow_second_layer=allow_second_layer, replace=force,
            protect=protect, device=device, progress=progress,
        )  # fmt: skip
    tell(made, out, as_json=as_json, quiet=quiet)
