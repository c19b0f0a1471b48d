"""One kind of source a file; `mole.data.opening` chooses among them."""
