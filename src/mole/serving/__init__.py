"""The developer's inference server, and the page to try morphing on. No key is ever here."""
