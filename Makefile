# The commands that people, hooks and CI all use. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo playground lint format test explore fuzz check docs pictures bench analysis clean

help:  ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv with pinned dependencies

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --no-compile --editable '.[torch,dicom,s3,ray,audit,export,front,serve,client,playground,dev]'
	touch $@

demo: $(READY)  ## Play both roles on the data that ships with the package
	rm -rf mole-demo
	$(BIN)/mole demo --out mole-demo

playground: $(READY)  ## Open a local page to try morphing and noise on a picture
	$(BIN)/mole playground

lint: $(READY)  ## Check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## Format, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A process for each core, up to what an ordinary memory holds, and one thread in each: two libraries that both
# take all cores wait for each other.
# One that dies is not replaced: the run ends, and red, where it would wait for ever.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses=8 --dist loadfile --no-loadscope-reorder --max-worker-restart=0

test: $(READY)  ## Run tests and doctests, warnings are errors
	$(PYTEST)

explore: $(READY)  ## Run the property tests with new examples, and many more of them
	$(PYTEST) -m hypothesis --hypothesis-profile=explore --timeout=3600

fuzz: $(READY)  ## Damage files of every kind and read them: make fuzz CASES=20000 SEED=1
	OMP_NUM_THREADS=1 $(BIN)/python tools/fuzz.py --cases $(or $(CASES),20000) --seed $(or $(SEED),1)

check: lint test  ## Everything CI checks

bench: $(READY)  ## Run the benchmarks, rewrite their JSON and docs/performance.md
	$(BIN)/python benchmarks/augment.py
	$(BIN)/python benchmarks/augmented_forward.py
	$(BIN)/python benchmarks/morph.py
	$(BIN)/python benchmarks/protect.py $(if $(FRONT),--front $(FRONT))
	$(BIN)/python benchmarks/inspection.py
	$(BIN)/python benchmarks/decoding.py
	$(BIN)/python benchmarks/numerics.py $(if $(IMAGES),--images $(IMAGES))
	$(BIN)/python benchmarks/attacks.py $(if $(IMAGES),--images $(IMAGES))
	$(if $(IMAGES),$(BIN)/python benchmarks/moment_matching.py --images $(IMAGES))
	$(BIN)/python benchmarks/outsider.py
	$(if $(WEIGHTS),$(BIN)/python benchmarks/copying.py --weights $(WEIGHTS))
	$(BIN)/python benchmarks/ica.py $(if $(IMAGES),--images $(IMAGES))
	$(BIN)/python benchmarks/few_images.py
	$(BIN)/python benchmarks/frozen_layer.py
	$(BIN)/python benchmarks/augmentations.py
	$(BIN)/python benchmarks/open_key.py $(if $(BEFORE),--before $(BEFORE))
	$(BIN)/python benchmarks/deliver.py $(if $(IMAGES),--images $(IMAGES))
	$(if $(PHOTOS),$(BIN)/python benchmarks/large_images.py --data $(PHOTOS))
	$(if $(SMALL_PHOTOS),$(BIN)/python benchmarks/tiles_training.py --data $(SMALL_PHOTOS) $(if $(IMAGES),--public $(IMAGES)) --seeds 8)
	rm -rf mole-demo
	$(BIN)/mole demo --out mole-demo --json > benchmarks/results/demo.json
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/scale.py $(if $(MOST),--most $(MOST))
	$(BIN)/python benchmarks/playground.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/serving_restarts.py
	$(BIN)/python tools/performance.py
	$(BIN)/python tools/protection.py
	$(BIN)/python tools/paper_vs_measured.py

analysis: $(READY)  ## Rewrite the figures of docs/analysis.md
	$(BIN)/mole analyse --preset cifar-vgg16 --json > docs/results/analysis-cifar-vgg16.json
	$(BIN)/mole analyse --preset imagenet-resnet152 --json > docs/results/analysis-imagenet-resnet152.json
	$(BIN)/mole analyse --preset imagenet-resnet152 --tile 8 --json > docs/results/analysis-tiles.json

docs: $(READY)  ## Build the API reference from docstrings, into site/
	rm -rf site
	$(BIN)/python tools/reference.py site

pictures: demo  ## Make the README's pictures from the demo; needs Chromium
	$(BIN)/python tools/pictures.py mole-demo docs/pictures

clean:  ## Remove the environment and everything built
	rm -rf $(VENV) dist build site .mypy_cache .pytest_cache .ruff_cache .hypothesis
