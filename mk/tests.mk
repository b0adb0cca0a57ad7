# The tests. `make test` runs every part even when one fails, and fails at the end. Each
# part says how many tests it counted in a line "<part>: N passed, N failed".

.PHONY: test unit unit-programs corpus e2e bench bench-programs fuzz fuzz-run fmt lint \
    lint-selftest measure

WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup

# Where the tests find what was built, as absolute paths; the runners read these.
export TRACEPLANE_BUILD := $(CURDIR)/$(P)
export TRACEPLANED := $(CURDIR)/$(P)/traceplaned
export CC

support_objects := $(call object,$(call sources,support))
ONLY ?= test_*
UNIT_PROGRAMS := $(patsubst tests/unit/%.c,$(B)/unit/%, \
    $(sort $(wildcard tests/unit/$(ONLY).c)))

$(B)/obj/tests/support/%.o: tests/support/%.c $(B)/flags build/include/tests/.made
	@$(if $(Q),echo "  CC   $<")
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -fPIE $(call includes,tests) -c -o $@ $<

$(B)/obj/tests/unit/%.o: tests/unit/%.c $(B)/flags build/include/tests/.made
	@$(if $(Q),echo "  CC   $<")
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -fPIE $(call includes,tests) -c -o $@ $<

$(B)/unit/%: $(B)/obj/tests/unit/%.o $(support_objects) $(ROOMS_A)
	@$(if $(Q),echo "  LD   $@")
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(WRAP) -o $@ $^ $(LIBS_TEST) $(LIBS)

unit-programs: $(UNIT_PROGRAMS)

unit: $(UNIT_PROGRAMS) ## the unit tests; ONLY=test_x runs one program
	$(Q)V=$(V) tests/run-unit $(B)/unit.log $(UNIT_PROGRAMS)

# A part that another directory brings with it. $1 is its runner.
run_part = test -x $1 || { echo "make $@: $1 is not there" >&2; exit 1; }; $1

corpus: all ## every trace of the corpus in and out again
	$(Q)$(call run_part,tests/corpus/run)

# The stand-in for PyTorch processes has its parts in tests/support.
$(E2E_PROGRAMS): $(call object,$(wildcard tests/support/kineto_*.c))

e2e: all $(E2E_PROGRAMS) ## numbered scenarios against the running service; SCENARIOS="102- 114-": some
	$(Q)$(call run_part,tests/e2e/run) $(SCENARIOS)

bench-programs: $(BENCH_PROGRAMS)

bench: all bench-programs ## the numbers, a line each
	$(Q)$(call run_part,bench/run)

test: ## everything that must pass
	+$(Q)failed=""; \
	for part in lint-selftest unit corpus e2e; do \
	    $(MAKE) $$part || failed="$$failed $$part"; \
	done; \
	test -z "$$failed" || { echo "make test: failed:$$failed" >&2; exit 1; }

# Fuzz targets are built by clang in a variant of their own, rooms included.
FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%, \
    $(sort $(wildcard tests/fuzz/fuzz_*.c)))

$(B)/obj/tests/fuzz/%.o: tests/fuzz/%.c $(B)/flags build/include/tests/.made
	@$(if $(Q),echo "  CC   $<")
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -fPIE $(call includes,tests) -c -o $@ $<

$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(ROOMS_A)
	@$(if $(Q),echo "  LD   $@")
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

fuzz: ## each fuzz target for FUZZ_SECONDS (10)
	+$(Q)$(MAKE) CC=clang SAN=fuzzer fuzz-run

fuzz-run: $(FUZZ_PROGRAMS)
	$(Q)tests/run-fuzz $(FUZZ_SECONDS) $(B)/fuzz-work $(FUZZ_PROGRAMS)

lint: $(foreach r,$(ROOMS) tests,build/include/$r/.made) ## what needs no run; GATES="sizes docs" runs those
	$(Q)tests/lint/run $(GATES)

lint-selftest: ## each lint gate catches what it is for
	$(Q)tests/lint/selftest

measure: ## sizes, comments and tests, as in the table of the style guide
	$(Q)tests/lint/measure

fmt: ## let clang-format write every C file
	$(Q)source tests/lint/lib.sh && files c h | xargs -r clang-format -i
