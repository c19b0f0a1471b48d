"""The command `mole`: parses, calls, prints.

Rules of the terminal: stdout is data (a table, or JSON with --json); everything else goes to stderr; a
mistake of the user's is one sentence that starts with 'mole:' and never a traceback; exit codes are 0,
1 (the work failed) and 2 (the call was wrong). Nothing imports this package.
"""

from mole.cli.app import main

__all__ = ["main"]
