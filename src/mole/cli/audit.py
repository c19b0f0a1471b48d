"""`mole audit`: attack a delivery, or a setting, and write down what it hides and what it does not."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mole.cli.choices import CoreKind, Dtype
from mole.cli.secrets import IdentityOption, PassphraseFileOption, open_key
from mole.cli.terminal import (
    CallError,
    JsonOption,
    QuietOption,
    check_folder,
    progress_bar,
    say,
    show,
    when_interrupted,
)
from mole.errors import DeliveryError
from mole.exchange.layer_files import load_first_layer

if TYPE_CHECKING:
    from mole.audit.subject import Subject


def audit(
    delivery: Annotated[
        str | None, typer.Argument(help="A delivery. Without one, a setting is audited: give --layer.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its key, to compare with the truth.")] = None,
    truth: Annotated[str | None, typer.Option(help="The data it was made from.")] = None,
    public: Annotated[
        str | None, typer.Option(help="Other images of the same kind, as an attacker may have.")
    ] = None,
    layer: Annotated[Path | None, typer.Option(help="The developer's first layer.")] = None,
    kappa: Annotated[
        int | None, typer.Option(help="For a setting: how often the core repeats; 1 by default.", min=1)
    ] = None,
    core: Annotated[
        CoreKind | None, typer.Option(help="For a setting: which kind of core; orthogonal by default.")
    ] = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="For a setting: how values are stored; float32 by default.")
    ] = None,
    budget: Annotated[
        float, typer.Option(help="Seconds after which no further attack begins.", min=1)
    ] = 600.0,
    seed: Annotated[int, typer.Option(help="Of what attacks draw at random.", min=0, max=2**63 - 1)] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the report.")] = Path("audit"),
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Attack a delivery with everything there is; write audit.json and a page to read, audit.html.

    Nothing leaves your machine. The page shows some of your images: keep it as carefully as them. Without a
    delivery it says what a setting would give, with images that come with the software.
    """
    from mole.audit.paper_figures import paper_figures  # noqa: PLC0415
    from mole.audit.run import audit as attack  # noqa: PLC0415  (loads SciPy and scikit-image)
    from mole.audit.write import write_report  # noqa: PLC0415

    if delivery is None and any(option is not None for option in (key, truth, public)):
        raise CallError("--key, --truth and --public belong to a delivery: name it, or leave them out")
    if delivery is not None and any(option is not None for option in (kappa, core, dtype)):
        raise CallError("--kappa, --core and --dtype are for a setting: leave them out, or the delivery")
    if out.exists() or out.is_symlink():
        raise DeliveryError(f"{out} exists already: choose another name with --out")
    check_folder(out)
    with when_interrupted("nothing was written; call again to start over"):
        subject = (
            _setting(layer, kappa or 1, core or CoreKind.ORTHOGONAL, dtype or Dtype.FLOAT32)
            if delivery is None
            else _delivery(delivery, key, truth, public, layer, passphrase_file, identity)
        )
        for warning in subject.warnings:
            say(f"mole: {warning}", quiet=quiet)
        with progress_bar("Attacking", quiet=quiet) as progress:
            report = attack(subject, plots=paper_figures(), budget=budget, seed=seed, progress=progress)
        page = write_report(report, out)
    for verdict in report.verdicts:
        say(f"{verdict.who}: {verdict.sentence}.", quiet=quiet)
    show(
        {
            "page": str(page),
            "verdicts": {verdict.attacker: verdict.level for verdict in report.verdicts},
            "attacks": {attack.name: attack.status for attack in report.attacks},
        },
        as_json=as_json,
    )


def _setting(layer: Path | None, kappa: int, core: CoreKind, dtype: Dtype) -> "Subject":
    from mole.audit.subject import subject_of_setting  # noqa: PLC0415

    if layer is None:
        raise CallError("say what to audit: give a delivery, or a setting with --layer")
    return subject_of_setting(load_first_layer(layer), kappa=kappa, core=core.value, dtype=dtype.value)


def _delivery(
    delivery: str,
    key: Path | None,
    truth: str | None,
    public: str | None,
    layer: Path | None,
    passphrase_file: Path | None,
    identity: list[Path] | None,
) -> "Subject":
    from mole.audit.from_delivery import Known, subject_of_delivery  # noqa: PLC0415
    from mole.sources.opening import open_source  # noqa: PLC0415
    from mole.storage.stores import open_store  # noqa: PLC0415

    known: dict[str, Any] = {}
    if layer is not None:
        known["layer"] = load_first_layer(layer)
    if truth is not None:
        known["truth"] = open_source(truth)
    if public is not None:
        known["public"] = open_source(public)
    if key is not None:
        known["key"] = open_key(key, passphrase_file, identity)
    return subject_of_delivery(open_store(delivery), Known(**known))
