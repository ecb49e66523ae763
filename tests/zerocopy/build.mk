# zerocopy: AF_XDP in zero-copy mode, in a QEMU guest. The guest gets the programs of this build and of the debug build.
.PHONY: check-zerocopy
check-zerocopy: all test-tools ## boot a guest with virtio_net and run the AF_XDP tests there in zero-copy mode (as root)
	$(MAKE) VARIANT=debug all
	tests/zerocopy/run $(BUILD)
