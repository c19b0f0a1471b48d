"""A local page to try things on: one picture, what becomes of it, and what each attacker makes of that.

`stock` has the pictures; `choices` are what a visitor can choose; `morphing_trial` and `noise_trial` try
that out with keys that are thrown away; `answers` puts it into words and pictures; `gate` keeps everybody
else out, and `local_site` serves the page.
"""

from importlib.util import find_spec

from mole.errors import MissingExtraError

if find_spec("starlette") is None or find_spec("uvicorn") is None:
    raise MissingExtraError("the playground needs starlette and uvicorn", "playground")
