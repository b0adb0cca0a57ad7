# The libraries, found by pkg-config. A missing one stops make with one sentence; the
# targets that need no library (clean, help, deps, demo, fmt) do not ask.

PKGS_BUILD := libmicrohttpd json-c libcurl libisal libzstd sqlite3
PKGS_EXAMPLES := gnutls
PKGS_TEST := cmocka zlib
NEEDS_NOTHING := clean help deps demo fmt lint-selftest measure
NEEDS_TEST := test unit fuzz lint unit-programs

goals := $(or $(MAKECMDGOALS),all)
PKGS := $(if $(filter-out $(NEEDS_NOTHING),$(goals)),$(PKGS_BUILD) $(PKGS_EXAMPLES))
ifneq ($(PKGS),)
ifneq ($(filter $(NEEDS_TEST) build/%,$(goals)),)
PKGS += $(PKGS_TEST)
endif

has = $(shell command -v $1 2>/dev/null)
ifeq ($(call has,pkg-config),)
$(error pkg-config is missing: run deploy/install-deps)
endif
ifeq ($(call has,$(firstword $(CC))),)
$(error the compiler $(CC) is missing: run deploy/install-deps)
endif
missing := $(strip $(foreach p,$(PKGS),$(shell pkg-config --exists $p || echo $p)))
ifneq ($(missing),)
$(error pkg-config does not find $(missing): run deploy/install-deps)
endif

LIB_CFLAGS := $(shell pkg-config --cflags $(PKGS_BUILD))
LIBS := $(shell pkg-config --libs $(filter-out $(PKGS_TEST) $(PKGS_EXAMPLES),$(PKGS))) -ldl -lm
LIBS_TEST := $(if $(filter $(PKGS_TEST),$(PKGS)),$(shell pkg-config --libs $(PKGS_TEST)))
endif
