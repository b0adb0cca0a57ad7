# Objects, archives and programs.
#
#   librooms.a          every room except the main() of the service and the CLI; what
#                       the service, the tests and the benchmarks are linked with
#   libtraceplane.{a,so} lib/producer and what it needs of the rooms below, of which
#                       only the symbols in libtraceplane.map can be seen
#   traceplaned         server/main.c and librooms.a
#   traceplane          cli/*.c, when it is there

object = $(patsubst %.c,$(B)/obj/%.o,$1)

# One compile rule a room: the include path differs.
define compile_rule
$(B)/obj/$(call room_dir,$1)/%.o: $(call room_dir,$1)/%.c $(B)/flags build/include/$1/.made
	@$$(if $$(Q),echo "  CC   $$<")
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(COMPILE) $$(call pic,$1) $$(call includes,$1) -c -o $$@ $$<
endef
$(foreach r,$(ROOMS),$(eval $(call compile_rule,$r)))

archive_rooms := $(filter-out cli,$(ROOMS))
archive_sources := $(filter-out server/main.c, \
    $(foreach r,$(archive_rooms),$(call sources,$r)))
ROOMS_A := $(B)/librooms.a

ar_text := $(archive_sources)
ar_known := $(if $(wildcard $(B)/librooms.list),$(file <$(B)/librooms.list))
ifneq ($(ar_text),$(ar_known))
.PHONY: $(B)/librooms.list
endif
$(B)/librooms.list:
	$(Q)mkdir -p $(@D) && printf '%s\n' '$(ar_text)' >$@

$(ROOMS_A): $(call object,$(archive_sources)) $(B)/librooms.list
	@$(if $(Q),echo "  AR   $@")
	$(Q)rm -f $@ && $(AR) qcsD $@ $(filter %.o,$^)

# The library is all of lib/producer and, by way of an archive, those objects of the
# rooms below that it refers to. The static one is a single object in which all other
# symbols were made local, so that it clashes with nothing.
producer_objects := $(call object,$(call sources,producer))
NEEDS_A := $(B)/libneeds.a
SONAME := libtraceplane.so.0
OBJCOPY ?= objcopy
PRODUCER_LIBS = $(shell pkg-config --libs libcurl) -ldl -lm

$(NEEDS_A): $(call object,$(foreach r,$(filter-out producer,$(PIC_ROOMS)),\
    $(call sources,$r)))
	@$(if $(Q),echo "  AR   $@")
	$(Q)rm -f $@ && $(AR) qcsD $@ $^

$(B)/libtraceplane.keep: mk/libtraceplane.map
	$(Q)sed -n 's/^ *\(tp_[a-z_]*\);.*/\1/p' $< >$@

$(B)/libtraceplane.o: $(producer_objects) $(NEEDS_A) $(B)/libtraceplane.keep
	@$(if $(Q),echo "  LD   $@")
	$(Q)$(LD) -r -o $@ $(filter %.o,$^) $(NEEDS_A)
	$(Q)$(OBJCOPY) --keep-global-symbols=$(B)/libtraceplane.keep $@

$(P)/libtraceplane.a: $(B)/libtraceplane.o
	@$(if $(Q),echo "  AR   $@")
	$(Q)rm -f $@ && $(AR) qcsD $@ $^

# Never unloaded: threads and the process run code of it when they end.
$(P)/libtraceplane.so: $(producer_objects) $(NEEDS_A) mk/libtraceplane.map
	@$(if $(Q),echo "  LD   $@")
	$(Q)$(CC) $(BASE_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=mk/libtraceplane.map -Wl,-z,nodelete \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
	    -o $@ $(filter %.o,$^) $(NEEDS_A) $(PRODUCER_LIBS)
	$(Q)ln -sfn libtraceplane.so $(@D)/$(SONAME)

$(P)/traceplaned: $(B)/obj/server/main.o $(ROOMS_A)
	@$(if $(Q),echo "  LD   $@")
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(P)/traceplane: $(call object,$(call sources,cli))
	@$(if $(Q),echo "  LD   $@")
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# Small programs of one source file each: examples/x.c, bench/x.c, tests/e2e/x.c become
# examples/x, bench/x, e2e/x beside the service.
define program_rules
$(B)/obj/$1/%.o: $1/%.c $(B)/flags build/include/$2/.made
	@$$(if $$(Q),echo "  CC   $$<")
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(COMPILE) -fPIE $$(call includes,$2) -c -o $$@ $$<
$(P)/$(notdir $1)/%: $(B)/obj/$1/%.o $(ROOMS_A)
	@$$(if $$(Q),echo "  LD   $$@")
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(LINK) -o $$@ $$^ $$(LIBS)
endef
$(eval $(call program_rules,examples,examples))
$(eval $(call program_rules,bench,tests))
$(eval $(call program_rules,tests/e2e,tests))
programs = $(patsubst $1/%.c,$(P)/$(notdir $1)/%,$(wildcard $1/*.c))

# A program of several files: examples/x/*.c becomes examples/x, and likewise from *.cc
# where there is a C++ compiler. It sees no room but only the installed headers: it is
# what a user of the library writes.
EXAMPLE_LIBS = $(shell pkg-config --libs gnutls libcurl libzstd) -ldl -lm
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif
CXX_FLAGS := $(filter-out -std=c11 -Wstrict-prototypes -Wmissing-prototypes,$(BASE_CFLAGS))
COMPILE_CXX = $(CXX) -std=c++17 $(CXX_FLAGS) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP

build/include/user/.made: mk/products.mk
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/traceplane
	$(Q)for header in $(PUBLIC_HEADERS); do \
	    ln -s ../../../../$$header $(@D)/traceplane; \
	done
	$(Q)touch $@

$(B)/obj/examples/%.o: examples/%.c $(B)/flags build/include/user/.made
	@$(if $(Q),echo "  CC   $<")
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -fPIE -Ibuild/include/user -c -o $@ $<

$(B)/obj/examples/%.o: examples/%.cc $(B)/flags build/include/user/.made
	@$(if $(Q),echo "  CXX  $<")
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE_CXX) -fPIE -Ibuild/include/user -c -o $@ $<

example_objects = $(patsubst %.c,$(B)/obj/%.o,$(wildcard examples/$1/*.c)) \
    $(patsubst %.cc,$(B)/obj/%.o,$(wildcard examples/$1/*.cc))
example_linker = $(if $(wildcard examples/$1/*.cc),$(CXX) $(BASE_LDFLAGS) $(LDFLAGS) -pie,$(LINK))

define example_rule
$(P)/examples/$1: $(call example_objects,$1) $(P)/libtraceplane.a
	@$$(if $$(Q),echo "  LD   $$@")
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(call example_linker,$1) -o $$@ $$^ $$(EXAMPLE_LIBS)
endef
HAS_CXX := $(shell command -v $(firstword $(CXX)) 2>/dev/null)
EXAMPLE_FOLDERS := $(sort $(patsubst examples/%/,%,$(dir $(wildcard examples/*/*.c \
    $(if $(HAS_CXX),examples/*/*.cc)))))
$(foreach e,$(EXAMPLE_FOLDERS),$(eval $(call example_rule,$e)))

EXAMPLES := $(call programs,examples) $(addprefix $(P)/examples/,$(EXAMPLE_FOLDERS))
BENCH_PROGRAMS := $(call programs,bench)
E2E_PROGRAMS := $(call programs,tests/e2e)

PRODUCTS := $(if $(producer_objects),$(P)/libtraceplane.a $(P)/libtraceplane.so) \
    $(P)/traceplaned $(if $(call sources,cli),$(P)/traceplane) $(EXAMPLES)

server/main.c:
	@echo "server/main.c is not there: the service cannot be built" >&2; exit 1

# Files that a source takes in with .incbin; the compiler does not list them in its
# dependency files.
$(B)/obj/server/embed.o: $(wildcard openapi.yaml web/dist/*)

-include $(shell [ -d $(B)/obj ] && find $(B)/obj -name '*.d')
