# Compiler and linker flags. A change of any of them rebuilds the variant: each object
# depends on $(B)/flags, which is rewritten only when its text changes.

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
    -Wpointer-arith -Wvla -Wformat=2 -Wundef $(if $(filter 0,$(WERROR)),,-Werror)

ifeq ($(SAN),)
OPTIMIZE := -O2
HARDEN := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
SAN_CFLAGS :=
SAN_LDFLAGS :=
else ifeq ($(SAN),fuzzer)
OPTIMIZE := -O1
HARDEN := -DTP_SANITIZED=1
san_common := -fno-omit-frame-pointer -fno-sanitize-recover=all
SAN_CFLAGS := -fsanitize=fuzzer-no-link,address,undefined $(san_common)
SAN_LDFLAGS := -fsanitize=fuzzer,address,undefined
else
OPTIMIZE := -O1
HARDEN := -DTP_SANITIZED=1
SAN_CFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
SAN_LDFLAGS := -fsanitize=$(SAN)
endif

# What may go into the shared library is position independent; the rest is so enough for
# PIE. Of the library only what its public headers declare is seen from outside.
PIC_ROOMS := base core trace producer
PIC := -fPIC -fvisibility=hidden -fno-semantic-interposition
pic = $(if $(filter $(PIC_ROOMS),$1),$(PIC),-fPIE)

BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -DTP_VERSION='"$(VERSION)"' -pthread -g \
    $(OPTIMIZE) $(WARNINGS) $(HARDEN) $(SAN_CFLAGS) $(LIB_CFLAGS)
BASE_LDFLAGS := -pthread -Wl,--as-needed -Wl,-z,relro,-z,now $(SAN_LDFLAGS)

COMPILE = $(CC) $(BASE_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP
LINK = $(CC) $(BASE_LDFLAGS) $(LDFLAGS) -pie

flags_text := $(COMPILE) $(LINK) $(PIC) $(PIC_ROOMS)
flags_known := $(if $(wildcard $(B)/flags),$(file <$(B)/flags))
ifneq ($(flags_text),$(flags_known))
.PHONY: $(B)/flags
endif
$(B)/flags:
	$(Q)mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(flags_text))' >$@
