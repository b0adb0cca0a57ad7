# Installation, with DESTDIR and PREFIX. The public headers go into include/traceplane/,
# as they are included: <traceplane/traceplane.h>.

PUBLIC_HEADERS := $(addprefix lib/producer/,traceplane.h record.h macros.h)

.PHONY: install

install: all ## into $(DESTDIR)$(PREFIX): programs, library, headers, traceplane.pc
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(Q)install -m 755 $(P)/traceplaned $(wildcard $(P)/traceplane) \
	    $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 644 $(P)/libtraceplane.a $(DESTDIR)$(PREFIX)/lib
	$(Q)install -m 755 $(P)/libtraceplane.so $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	$(Q)ln -sfn $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtraceplane.so
	$(Q)install -d $(DESTDIR)$(PREFIX)/include/traceplane
	$(Q)install -m 644 $(PUBLIC_HEADERS) $(DESTDIR)$(PREFIX)/include/traceplane
	$(Q)install -D -m 644 lib/producer/python/traceplane.py \
	    $(DESTDIR)$(PREFIX)/share/traceplane/python/traceplane.py
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' mk/traceplane.pc.in \
	    >$(DESTDIR)$(PREFIX)/lib/pkgconfig/traceplane.pc
