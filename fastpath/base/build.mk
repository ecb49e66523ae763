# fastpath/base: see the lists in the Makefile
LIB += fastpath/base/base.c fastpath/base/control.c fastpath/base/control_client.c fastpath/base/control_request.c \
	fastpath/base/link.c fastpath/base/log.c fastpath/base/printable.c fastpath/base/privileges.c fastpath/base/syscall_filter.c \
	fastpath/base/version.c

# Only version.o knows the version; the stamp changes, and version.o is made again, when the version does.
VERSION_STAMP := $(O)/gen/version.stamp
$(shell mkdir -p $(O)/gen; echo '$(VERSION)' | cmp -s - $(VERSION_STAMP) || echo '$(VERSION)' > $(VERSION_STAMP))
$(O)/obj/fastpath/base/version.o: CPPFLAGS += -DSKUA_VERSION='"$(VERSION)"'
$(O)/obj/fastpath/base/version.o: $(VERSION_STAMP)
