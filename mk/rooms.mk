# The rooms, what each may include, and one include directory for each.
#
# build/include/<room>/ holds a symbolic link for each room that <room> may include, so
# that "core/registry.h" is found from the engine and is not found from base. A room
# that does not exist yet has no link. tests/lint/layers checks the same table in the
# text, where a room would otherwise reach another one by a relative path. The public
# headers of the producer are <traceplane/...> here as where they are installed.

LIB_ROOMS := base core trace kineto store engine producer
ROOMS := $(LIB_ROOMS) api server cli

SEES_base := base
SEES_core := base core
SEES_trace := base core trace
SEES_kineto := base core kineto
SEES_store := base core store
SEES_engine := base core trace kineto store engine
SEES_producer := base core trace producer
SEES_api := base core trace kineto store engine api
SEES_server := $(SEES_api) server
SEES_cli := cli
SEES_tests := base core trace kineto store engine producer api server support
SEES_examples := $(SEES_tests)

# The directory of a room, and the sources in it and in its folders.
room_dir = $(if $(filter $(LIB_ROOMS),$1),lib/$1,$(if $(filter support,$1),tests/support,$1))
sources = $(sort $(wildcard $(call room_dir,$1)/*.c $(call room_dir,$1)/*/*.c))

# How a room finds its headers, and the rule that makes the links.
includes = -Ibuild/include/$1

define include_rule
build/include/$1/.made: mk/rooms.mk
	$$(Q)rm -rf $$(@D) && mkdir -p $$(@D)
	$$(Q)for room in $(SEES_$1); do \
	    case $$$$room in \
	    api|server|cli) ln -s ../../../$$$$room $$(@D)/$$$$room ;; \
	    support) ln -s ../../../tests/support $$(@D)/support ;; \
	    producer) ln -s ../../../lib/producer $$(@D)/producer; \
	        ln -s ../../../lib/producer $$(@D)/traceplane ;; \
	    *) ln -s ../../../lib/$$$$room $$(@D)/$$$$room ;; \
	    esac; \
	done
	$$(Q)touch $$@
endef
$(foreach r,$(ROOMS) tests examples,$(eval $(call include_rule,$r)))
