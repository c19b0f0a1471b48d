"""`mole keygen`: a key for a developer's first layer."""

import getpass
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mole.cli.named_files import check_folder, read_passphrase_file, warn_of_key_among
from mole.cli.options import (
    DepthOption,
    JsonOption,
    LayerOption,
    LayerSignerOption,
    ModeOption,
    PassphraseFileOption,
    QuietOption,
    ResizeOption,
    SkipBadOption,
    WindowOption,
    choices,
    parse_depth,
    parse_window,
    refuse_for_others,
)
from mole.cli.terminal import note, progress_bar, say, show, warn, warn_of, warnings_said
from mole.cli.wrong_calls import CallError
from mole.errors import KeyFileError
from mole.exchange.delivery import UNFINISHED
from mole.exchange.layer_files import load_first_layer
from mole.exchange.manifest import NAME as MANIFEST
from mole.exchange.signatures import load_signed_layer
from mole.provider.keys import MorphKey
from mole.provider.keys.derivation import KeyParameters
from mole.provider.keys.key_file import check_passphrase, whitening_path
from mole.provider.keys.learning import sample_of, sample_size
from mole.provider.ledger import keygen_warnings
from mole.scheme.first_layer import FirstLayer
from mole.scheme.layer_sizes import refuse_too_large
from mole.scheme.layouts import Layout, ShuffledTilesLayout
from mole.scheme.morphing import CORE_KINDS, CoreKind
from mole.scheme.shapes import shape_text
from mole.sources.inspection import inspect
from mole.sources.opening import open_similar, open_source
from mole.sources.preparation import Mode, Preparation, Resize
from mole.sources.source import Source

REPEATED = (
    "with kappa = {kappa} the same core is used {kappa} times in every image, and a stranger with "
    "similar images may find it; kappa = 1 hides more"
)
TILES = (
    "tiles hide images from the eye only: the same core is used {tiles:,} times in every image, so a "
    "stranger with similar images finds it, and a developer with a few known images too; seal the "
    "delivery, and send it to somebody you trust not to attack it"
)
FILLED = (
    "tiles of {tile} do not fill {plain} images: the key is for {whole}, and every image gets zeros at "
    "its ends before it is morphed"
)
SHUFFLED = (
    "patches come in a secret order, the same in every image: the network has to learn where each belongs "
    "from scratch, so position embeddings that were trained elsewhere do not help"
)
NOT_WHITENED = (
    "with this core a stranger who gets morphed files and has similar images learns brightness, "
    "colour and layout of yours; unless the key is for a protected delivery, let it learn from your images "
    "with --data, or from similar ones with --public, which hides more"
)
LARGE = 8192  # side of a core that takes minutes
FEW = (
    "{images:,} images are too few for a core of side {side}; {enough:,} would be enough. These are "
    "hidden as well as with more, but images that come later are not. More images help, yours with "
    "--data or similar public ones with --public"
)


def keygen(
    layer: LayerOption,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The key to write.")] = Path(
        "provider.key"
    ),
    kappa: Annotated[
        int, typer.Option(metavar="N", help="How many times the core stands on the diagonal.")
    ] = 1,
    tile: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Morph square tiles of N pixels instead: for large images. They hide from the eye only.",
        ),
    ] = None,
    shuffle_tiles: Annotated[
        bool,
        typer.Option(
            "--shuffle-tiles",
            help="Let tiles change places too: for patch embeddings trained from scratch.",
        ),
    ] = False,
    core: Annotated[
        CoreKind | None,
        typer.Option(
            metavar=choices(CORE_KINDS),
            help="Its kind; by default whitened with --data or --public, and orthogonal without.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Your data, all splits of it: a whitened core learns from it."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA", help="Similar public images, to learn from as well or instead. Repeatable."
        ),
    ] = None,
    mode: ModeOption = None,
    resize: ResizeOption = None,
    window: WindowOption = None,
    depth: DepthOption = "8",
    skip_bad: SkipBadOption = False,
    passphrase_file: PassphraseFileOption = None,
    recipient: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RECIPIENT",
            help="Encrypt the key for this age recipient instead of with a passphrase. Repeatable.",
        ),
    ] = None,
    layer_signer: LayerSignerOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a key. It stays with you: whoever has it can undo the morphing. A key is never overwritten."""
    learning = [place for place in (data, *(public or ())) if place is not None]
    kind: CoreKind = core or ("whitened" if learning else "orthogonal")
    _check_call(kind, learning, mode, resize)
    if tile is not None and kappa != 1:
        raise CallError("--tile says how many blocks there are: leave out --kappa")
    if tile is None and shuffle_tiles:
        raise CallError("--shuffle-tiles needs the side of the tiles: add --tile")
    if not learning and (window or depth != "8" or skip_bad):
        raise CallError(
            "--window, --depth and --skip-bad say how --data and --public are read: add one, or leave "
            "them out"
        )
    first = load_first_layer(layer) if layer_signer is None else load_signed_layer(layer, layer_signer)[0]
    _check_place(out, kind)
    layout = None
    if tile is not None:
        parameters = KeyParameters.of(first.input_shape, kind, tile=tile, shuffled=shuffle_tiles)
        layout = parameters.to_layout()
    refuse_too_large(first, layout)
    warnings = keygen_warnings(out, first.fingerprint)
    preparation = Preparation.for_layer(first, mode=mode, resize=resize)
    read: dict[str, Any] = {"labels": False, "window": parse_window(window), "bits": parse_depth(depth)}
    sources = [] if data is None else [open_source(data, **read)]
    sources += [open_similar(place, **read) for place in public or ()]
    refuse_for_others(sources, window, depth)
    for source in sources:
        _look_at(source, preparation, skip_bad=skip_bad, quiet=quiet)
    passphrase = None if recipient else _new_passphrase(out, passphrase_file)
    sample = None
    if sources:
        with progress_bar("Reading", quiet=quiet) as progress:
            count = sample_size(layout or Layout.of("rows", first.input_shape, kappa))
            sample = sample_of(sources, preparation, count, skip_bad=skip_bad, progress=progress)
    _tell_of_time(layout or Layout.of("rows", first.input_shape, kappa), quiet=quiet)
    with progress_bar("Making the core", quiet=quiet) as progress:
        key = MorphKey.generate(
            first.input_shape,
            kappa=kappa,
            tile=tile,
            shuffle_tiles=shuffle_tiles,
            core=kind,
            sample=sample,
            progress=progress,
        )
    with warnings_said(quiet=quiet):
        key.save(out, passphrase, recipients=recipient or ())
    warn_of_key_among([*([] if data is None else [data]), *(public or ())], out, quiet=quiet)
    for warning in warnings:
        warn(warning, quiet=quiet)
    say(f"{out} is your key: keep it safe, and keep it to yourself.", quiet=quiet)
    _tell_of(key, first, out, quiet=quiet)
    learned = key.learnt
    facts: dict[str, Any] = {
        "key": str(out),
        "fingerprint": key.fingerprint,
        "core": key.core,
        **({"kappa": key.kappa} if key.tile is None else {"tile": key.tile, "tiles": key.kappa}),
        **({"input shape": key.input_shape} if key.input_shape != first.input_shape else {}),
        **({"whitening": str(learned)} if learned is not None else {}),
    }
    show(facts, as_json=as_json)


def _check_call(kind: CoreKind, learning: list[str], mode: Mode | None, resize: Resize | None) -> None:
    if kind == "whitened" and not learning:
        raise CallError("core 'whitened' learns from data: add --data, or --public")
    if kind != "whitened" and learning:
        raise CallError(f"core '{kind}' learns nothing from data: leave out --data and --public")
    if not learning and (mode or resize):
        raise CallError(
            "--mode and --resize say how --data and --public are read: add one, or leave them out"
        )


def _tell_of_time(layout: Layout, *, quiet: bool) -> None:
    """Say beforehand what takes minutes, and what would be quicker."""
    if layout.block >= LARGE:
        note(
            f"a core of side {layout.block:,} takes minutes to make, and its layer much memory: with "
            "--tile both are smaller, and hide less",
            quiet=quiet,
        )


def _tell_of(key: MorphKey, first: FirstLayer, out: Path, *, quiet: bool) -> None:
    """Say what a new key needs, and what it does not hide."""
    if key.core == "whitened":
        say(f"{out}.whitening belongs to it: keep that too.", quiet=quiet)
    elif (
        len(first.input_shape) > 1
    ):  # a row of numbers is no image, and front features in maps look like one
        warn(NOT_WHITENED, quiet=quiet)
    learned = key.learnt
    if learned is not None and not learned.is_enough:
        side = key.morphing.core.size
        warn(FEW.format(images=learned.images, side=side, enough=learned.enough), quiet=quiet)
    if key.tile is not None:
        warn(TILES.format(tiles=key.kappa), quiet=quiet)
        _tell_of_tiles(key, first, quiet=quiet)
    elif key.kappa > 1:
        warn(REPEATED.format(kappa=key.kappa), quiet=quiet)


def _tell_of_tiles(key: MorphKey, first: FirstLayer, *, quiet: bool) -> None:
    """Say what becomes of images that tiles do not fill, or whose tiles change places."""
    if key.input_shape != first.input_shape:
        plain, whole = (shape_text(shape) for shape in (first.input_shape, key.input_shape))
        say(FILLED.format(tile=key.tile, plain=plain, whole=whole), quiet=quiet)
    if isinstance(key.parameters.to_layout(), ShuffledTilesLayout):
        say(SHUFFLED, quiet=quiet)


def _look_at(source: Source, preparation: Preparation, *, skip_bad: bool, quiet: bool) -> None:
    """Refuse images that cannot be used, or say that they are left out; other files do not matter here."""
    with progress_bar("Looking", quiet=quiet) as progress:
        looked = inspect(replace(source, unread=()), preparation, progress=progress)
    looked.refuse(skip_bad=skip_bad)
    if (left_out := looked.error(skipped=True)) is not None:
        warn_of(left_out, quiet=quiet)


def _check_place(out: Path, kind: CoreKind) -> None:
    """Refuse a place where the key could not be written, before any work is done."""
    for file in (out, whitening_path(out)) if kind == "whitened" else (out,):
        if file.exists() or file.is_symlink():
            raise KeyFileError(
                f"{file} exists already, and a key is never overwritten: choose another name"
            )
    check_folder(out)
    if (out.parent / MANIFEST).exists() or (out.parent / UNFINISHED).exists():
        raise KeyFileError(f"{out} would lie in a delivery, and leave with it: keep the key elsewhere")


def _new_passphrase(out: Path, file: Path | None) -> str:
    if file is not None:
        return check_passphrase(read_passphrase_file(file))
    if not sys.stdin.isatty():
        raise KeyFileError(f"{out} needs a passphrase: give --passphrase-file or --recipient")
    passphrase = check_passphrase(getpass.getpass(f"Passphrase for {out}: "))
    if passphrase != getpass.getpass("Once more: "):
        raise KeyFileError("the two passphrases differ: try again")
    return passphrase
