"""`mole audit`: attack a delivery, or a setting, and write down what it hides and what it does not."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from mole.cli.named_files import check_folder, secrets_for
from mole.cli.options import (
    DepthOption,
    IdentityOption,
    JsonOption,
    PassphraseFileOption,
    QuietOption,
    SkipBadOption,
    WindowOption,
    choices,
    parse_depth,
    parse_window,
    refuse_for_others,
)
from mole.cli.terminal import complain, progress_bar, say, show, warnings_said, when_interrupted
from mole.cli.wrong_calls import CallError
from mole.exchange.layer_files import load_first_layer
from mole.exchange.shards import DTYPES, Dtype
from mole.provider.keys import MorphKey
from mole.provider.sealing import look_at, opened_with
from mole.scheme.morphing import CORE_KINDS, CoreKind
from mole.sources.opening import open_similar, open_source

if TYPE_CHECKING:  # an extra
    from mole.audit.report import Report, Verdict

FailOn = Literal["broken", "leaks"]
REACHED, NOT_TESTED = 3, 4  # exit codes of --fail-on


def audit(
    delivery: Annotated[
        str | None,
        typer.Argument(
            metavar="DELIVERY", help="A delivery. Without one, a setting is audited: give --layer."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its key, to compare with the truth.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="Your data, from which the delivery was made.")
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Other images of the same kind, as an attacker may have."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(metavar="DELIVERY", help="Another delivery, or requests, under the same key."),
    ] = None,
    front: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Of a protected delivery: the front that it was made with, as ONNX."
        ),
    ] = None,
    window: WindowOption = None,
    depth: DepthOption = "8",
    skip_bad: SkipBadOption = False,
    layer: Annotated[Path | None, typer.Option(metavar="FILE", help="The developer's first layer.")] = None,
    kappa: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="For a setting: how many times the core repeats; by default 1.", min=1
        ),
    ] = None,
    tile: Annotated[
        int | None,
        typer.Option(metavar="N", help="For a setting: morph square tiles of N pixels.", min=1),
    ] = None,
    core: Annotated[
        CoreKind | None,
        typer.Option(
            metavar=choices(CORE_KINDS),
            help="For a setting: which kind of core; by default orthogonal.",
        ),
    ] = None,
    dtype: Annotated[
        Dtype | None,
        typer.Option(
            metavar=choices(DTYPES),
            help="For a setting: how values are stored; by default float32.",
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="When no further attack begins; one that has begun is not cut off.",
            min=1,
        ),
    ] = 600.0,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Fixes the attacks' random numbers: the same seed draws the same ones.",
            min=0,
            max=2**63 - 1,
        ),
    ] = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder for the report.")
    ] = Path("audit"),
    by: Annotated[str, typer.Option(metavar="NAME", help="Who makes this audit, for the page.")] = "",
    receiver: Annotated[
        str, typer.Option(metavar="NAME", help="Who gets the delivery, for the page.")
    ] = "",
    summary: Annotated[
        bool, typer.Option("--summary", help="Write one sheet to sign as well, summary.html.")
    ] = False,
    no_pictures: Annotated[
        bool, typer.Option("--no-pictures", help="Show no image anywhere: for a page to hand on.")
    ] = False,
    no_appendix: Annotated[
        bool, typer.Option("--no-appendix", help="Leave out the figures of the paper.")
    ] = False,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            metavar=choices(get_args(FailOn)),
            help="Exit with 3 if an attacker came that far, and with 4 if one was not tested in full. What "
            "a certificate allows is no leak. The page is written all the same.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", "-f", help="Replace another audit that is there; never anything else."),
    ] = False,
    passphrase_file: PassphraseFileOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Attack a delivery as others might; write audit.json and a page to read, audit.html.

    Nothing leaves your machine. The page shows some of your images, unless --no-pictures is given: keep it
    as private as them. Without a delivery it says what a setting would give away, with images that come
    with the software.
    """
    from mole.audit import run, write  # noqa: PLC0415  (an extra)

    of_delivery = (key, data, public, other, front, receiver or None, summary or None)
    if delivery is None and any(option is not None for option in of_delivery):
        raise CallError(
            "--key, --data, --public, --other, --front, --receiver and --summary belong to a delivery: "
            "name it, or leave them out"
        )
    if skip_bad and public is None:
        raise CallError("--skip-bad says how --public is read: add it, or leave it out")
    if (window or depth != "8") and data is None and public is None:
        raise CallError(
            "--window and --depth say how --data and --public are read: add one, or leave them out"
        )
    if delivery is not None and any(option is not None for option in (kappa, tile, core, dtype)):
        raise CallError(
            "--kappa, --tile, --core and --dtype are for a setting: leave them out, or leave out the "
            "delivery"
        )
    if tile is not None and kappa is not None:
        raise CallError("--tile says how many blocks there are: leave out --kappa")
    if delivery is None and layer is None:
        raise CallError("say what to audit: give a delivery, or a setting with --layer")
    write.check_place(out, replace_it=force)
    check_folder(out)
    with (
        when_interrupted("nothing was written; call again to start over"),
        warnings_said(quiet=quiet),
        progress_bar("Attacking", quiet=quiet) as progress,
    ):
        if delivery is not None:
            first = None if layer is None else load_first_layer(layer)
            pixels: dict[str, Any] = {"window": parse_window(window), "bits": parse_depth(depth)}
            original = None if data is None else open_source(data, labels=False, **pixels)
            similar = None if public is None else open_similar(public, **pixels)
            refuse_for_others(filter(None, (original, similar)), window, depth)
            look_at(delivery)
            opened = MorphKey.load(key, **secrets_for(key, passphrase_file, identity)) if key else None
            found = opened_with(delivery, opened, identity)
            report = run.audit(
                found, key=opened, layer=first, truth=original, public=similar, other=other, front=front,
                skip_bad=skip_bad, identity=identity, by=by, receiver=receiver, budget=budget, seed=seed,
                progress=progress,
            )  # fmt: skip
        elif layer is not None:
            report = run.audit_setting(
                layer, kappa=kappa or 1, tile=tile, core=core or "orthogonal",
                dtype=dtype or "float32", by=by, budget=budget, seed=seed, progress=progress,
            )  # fmt: skip
        page = report.save(
            out, pictures=not no_pictures, appendix=not no_appendix, summary=summary, replace=force
        )
    say(report.headline, quiet=quiet)
    for line in _lines(report):
        say(line, quiet=quiet)
    attacks = {found.attack.name: found.status.value for found in report.attacks}
    show(
        {
            "page": str(page),
            **({"summary": str(page.with_name("summary.html"))} if summary else {}),
            **({"headline": report.headline} if as_json or quiet else {}),  # else it was said already
            "verdicts": {verdict.attacker.value: verdict.level.value for verdict in report.verdicts},
            "not tested in full": [
                verdict.attacker.value for verdict in report.verdicts if not verdict.fully_tested
            ],
            **(
                {"attacks": attacks}
                if as_json
                else {f"attack: {name}": _plainly(attacks[name]) for name in attacks}
            ),
        },
        as_json=as_json,
    )
    if fail_on is not None:
        _fail_on(fail_on, report.verdicts)


def _plainly(status: str) -> str:
    """What came of an attack, in words that nobody takes for an error of this program."""
    return "got nothing" if status == "failed" else status


def _lines(report: "Report") -> list[str]:
    """What was found of each attacker; of a certificate that nothing was tried on, what it takes to try."""
    if report.is_certificate_alone and not report.is_promise_broken:
        return [*report.promises, *report.remarks]
    return [f"{verdict.who}: {verdict.sentence}." for verdict in report.in_order]


def _fail_on(worst: FailOn, verdicts: Sequence["Verdict"]) -> None:
    """End with a code that tells whether an attacker came that far, or whether nobody knows."""
    severe = get_args(FailOn)[: get_args(FailOn).index(worst) + 1]
    reached = [verdict for verdict in verdicts if verdict.level.value in severe]
    if reached:
        if all(verdict.lacks_noise for verdict in reached):  # perhaps without any attack
            complain(f"--fail-on {worst}: the noise that its certificate speaks of is missing")
        else:
            who = ", ".join(verdict.attacker.label for verdict in reached)
            complain(f"--fail-on {worst}: reached by {who}")
        raise typer.Exit(REACHED)
    untested = [verdict.attacker.label for verdict in verdicts if not verdict.fully_tested]
    if untested:
        complain(f"--fail-on {worst}: not known, because {', '.join(untested)} could not be tested in full")
        raise typer.Exit(NOT_TESTED)
