# Traceplane. `make help` lists the targets.
#
# One non-recursive makefile. Each directory of C is a room, and each room is compiled
# with an include path that shows only the rooms it may use (mk/rooms.mk), so that a
# wrong #include does not compile. Objects live under build/<variant>/, where a variant
# is a compiler and a set of sanitizers; the products of the plain one are in build/.
#
#   make SAN=address,undefined unit
#   make SAN=thread unit
#   make CC=clang all
#   make WERROR=0           warnings stay warnings
#   make V=1                show the commands, and all output of the unit tests

SHELL := /bin/bash
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory

ifeq ($(origin CC),default)
CC := gcc
endif
AR ?= ar
PREFIX ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0
SAN ?=
WERROR ?= 1
V ?= 0
FUZZ_SECONDS ?= 10

comma := ,
VARIANT := $(notdir $(lastword $(CC)))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
B := build/$(VARIANT)
P := $(if $(filter gcc,$(VARIANT)),build,$(B))
Q := $(if $(filter 1,$(V)),,@)

include mk/rooms.mk
include mk/libs.mk
include mk/flags.mk
include mk/products.mk
include mk/tests.mk
include mk/install.mk

.PHONY: all help clean deps demo

all: $(PRODUCTS) ## the service, the library, the examples, in build/

deps: ## install what the build and the tests need (apt, npm)
	$(Q)deploy/install-deps test

demo: ## install what is missing, build, then record a real program
	$(Q)deploy/install-deps demo
	+$(Q)$(MAKE) all
	$(Q)test -x examples/run-demo || { \
	    echo "make demo: examples/run-demo is not there" >&2; exit 1; }
	$(Q)examples/run-demo

clean: ## remove build/
	$(Q)rm -rf build

help: ## this list
	@echo "make TARGET [CC=gcc|clang] [SAN=address,undefined|thread] [WERROR=0] [V=1]"
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' \
	    Makefile mk/*.mk
