#!/usr/bin/env bats
# For test/ of cri-o/cri-o, beside critest.bats: runs where critest does, with events switched on.
# cri-event-conformance has to be in PATH.

load helpers

function setup() {
	if [[ "$RUN_CRITEST" != "1" ]]; then
		skip "RUN_CRITEST is not set"
	fi

	setup_test
	# The suite serves its image at a loopback address, over plain HTTP.
	export CONTAINER_REGISTRIES_CONF_DIR="$TESTDIR/registries.conf.d"
	mkdir "$CONTAINER_REGISTRIES_CONF_DIR"
	printf '[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n' \
		>"$CONTAINER_REGISTRIES_CONF_DIR/loopback.conf"
}

function teardown() {
	cleanup_test
}

@test "container events conform to the CRI" {
	ENABLE_POD_EVENTS=true start_crio

	cri-event-conformance run --runtime-endpoint "unix://$CRIO_SOCKET" --expectations builtin \
		--tier core --report-dir "${ARTIFACTS:-$TESTDIR}/cri-events" >&3
}
