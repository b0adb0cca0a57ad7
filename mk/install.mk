# Installation, with DESTDIR and PREFIX. The headers go as they are included,
# "base/err.h", into include/traceplane/, which traceplane.pc puts on the path.

.PHONY: install

install: all ## into $(DESTDIR)$(PREFIX): programs, library, headers, traceplane.pc
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(Q)install -m 755 $(P)/traceplaned $(wildcard $(P)/traceplane) \
	    $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 644 $(P)/libtraceplane.a $(DESTDIR)$(PREFIX)/lib
	$(Q)install -m 755 $(P)/libtraceplane.so $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	$(Q)ln -sfn $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtraceplane.so
	$(Q)for header in $(foreach r,$(PIC_ROOMS),$(wildcard lib/$r/*.h)); do \
	    install -D -m 644 $$header \
	        $(DESTDIR)$(PREFIX)/include/traceplane/$${header#lib/} || exit 1; \
	done
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' mk/traceplane.pc.in \
	    >$(DESTDIR)$(PREFIX)/lib/pkgconfig/traceplane.pc
