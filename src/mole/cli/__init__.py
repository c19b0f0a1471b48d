"""The command `mole`: parses, calls, prints.

Rules of the terminal: stdout is data (a table, or JSON with --json); everything else goes to stderr; a
mistake of the user's is one sentence that starts with 'mole:' and never a traceback, and what does not stop
the work starts with 'mole: warning:' or 'mole: note:'; exit codes are 0, 1 (the work failed), 2 (the call
was wrong) and 130 (interrupted). An output is never overwritten without
--force, and is looked at before the work begins. Nothing imports this package.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line: the entry point of the command `mole`."""
    try:
        from mole.cli.app import run  # noqa: PLC0415  (takes a while, in which Ctrl-C may come)
    except KeyboardInterrupt:
        sys.stderr.write("mole: interrupted before anything was done\n")
        sys.exit(INTERRUPTED)
    run()


__all__ = ["main"]
