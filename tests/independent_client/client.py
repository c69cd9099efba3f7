"""A CRI client that shares no line with the suite: grpcio, and stubs made from the CRI's own proto.

    client.py FOLDER SOCKET

FOLDER holds v1.proto, SOCKET is a runtime's. Makes a pod with containers that obey, ignore and exit,
watches all events meanwhile, and fails with what it saw if that is not what the CRI says.
"""

import queue
import sys
import threading
import time

import grpc

BOUND = 20  # Seconds; nothing here takes as long, unless it hangs.
CREATED, STARTED, STOPPED, DELETED = range(4)
RUNNING, EXITED = 1, 2


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: expected {wanted!r}, got {got!r}")


class Events:
    """All that one stream brings, read in a thread of its own."""

    def __init__(self, runtime, cri):
        self.arrived, self.seen = queue.Queue(), []
        self.stream = runtime.GetContainerEvents(cri.GetEventsRequest())
        # Headers come when the runtime has taken the subscription, and it sends them at once.
        self.stream.initial_metadata()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for event in self.stream:
                self.arrived.put(event)
        except grpc.RpcError as end:
            self.arrived.put(end)

    def next(self, what, container, kind):
        """The next event, which must be this one."""
        try:
            event = self.arrived.get(timeout=BOUND)
        except queue.Empty:
            sys.exit(f"{what}: no event came within {BOUND} s")
        if isinstance(event, grpc.RpcError):
            sys.exit(f"{what}: the stream ended: {event.code()}: {event.details()}")
        expect(what, (event.container_id, event.container_event_type), (container, kind))
        self.seen.append(event)
        return event


def own_status(event):
    return [status for status in event.containers_statuses if status.id == event.container_id]


def main(folder, socket):
    sys.path.insert(0, folder)
    cri, services = grpc.protos_and_services("v1.proto")
    # grpcio names the server by the socket's path, percent-encoded, which is no host's name.
    channel = grpc.insecure_channel(f"unix:{socket}")
    runtime = services.RuntimeServiceStub(channel)
    images = services.ImageServiceStub(channel)

    version = runtime.Version(cri.VersionRequest(version="v1"), timeout=BOUND)
    expect("runtime_name", version.runtime_name, "model")
    spec = cri.ImageSpec(image="example.org/any:tag")
    expect("image before", images.ImageStatus(cri.ImageStatusRequest(image=spec)).image.id, "")
    pulled = images.PullImage(cri.PullImageRequest(image=spec)).image_ref
    expect("image after", images.ImageStatus(cri.ImageStatusRequest(image=spec)).image.id, pulled)

    events, second = Events(runtime, cri), Events(runtime, cri)
    before = time.time_ns()
    config = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name="pod", uid="uid-1", namespace="ns", attempt=2),
        labels={"app": "x"},
    )
    pod = runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id
    for kind in (CREATED, STARTED):
        event = events.next("sandbox", pod, kind)
        expect("uid", event.pod_sandbox_status.metadata.uid, "uid-1")
        expect("attempt", event.pod_sandbox_status.metadata.attempt, 2)
        now = time.time_ns()
        expect("created_at is now", before - 10**9 < event.created_at < now + 10**9, True)

    def create(name, *command):
        container = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name),
            image=spec,
            command=["/workload", *command],
            labels={"name": name},
        )
        ask = cri.CreateContainerRequest(pod_sandbox_id=pod, config=container, sandbox_config=config)
        made = runtime.CreateContainer(ask).container_id
        expect("created", len(own_status(events.next(name, made, CREATED))), 1)
        return made

    def start(container):
        runtime.StartContainer(cri.StartContainerRequest(container_id=container))
        expect("state", own_status(events.next("start", container, STARTED))[0].state, RUNNING)

    def stopped(container, code, reason):
        status = own_status(events.next("stop", container, STOPPED))[0]
        expect("exit", (status.state, status.exit_code, status.reason), (EXITED, code, reason))

    obeys, ignores = create("obeys", "until-term"), create("ignores", "ignore-term")
    exits = create("exits", "exit", "7", "200")
    start(exits)
    stopped(exits, 7, "Error")
    start(obeys)
    runtime.StopContainer(cri.StopContainerRequest(container_id=obeys, timeout=10))
    stopped(obeys, 0, "Completed")
    start(ignores)
    began = time.monotonic()
    runtime.StopContainer(cri.StopContainerRequest(container_id=ignores, timeout=1))
    expect("the grace period is kept", 1 <= time.monotonic() - began < BOUND, True)
    stopped(ignores, 137, "Error")

    in_state = cri.ContainerFilter(state=cri.ContainerStateValue(state=EXITED), id=obeys[:13])
    listed = runtime.ListContainers(cri.ListContainersRequest(filter=in_state)).containers
    expect("a filtered list", [item.id for item in listed], [obeys])
    runtime.RemoveContainer(cri.RemoveContainerRequest(container_id=obeys))
    expect("not in its own DELETED", own_status(events.next("remove", obeys, DELETED)), [])
    try:
        runtime.ContainerStatus(cri.ContainerStatusRequest(container_id=obeys))
        sys.exit("the status of a removed container was returned")
    except grpc.RpcError as fault:
        expect("status", fault.code(), grpc.StatusCode.NOT_FOUND)

    runtime.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
    for container, kind in ((pod, STOPPED), (ignores, DELETED), (exits, DELETED), (pod, DELETED)):
        events.next("sandbox's end", container, kind)
    runtime.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
    expect("pods at the end", len(runtime.ListPodSandbox(cri.ListPodSandboxRequest()).items), 0)
    try:
        runtime.CheckpointContainer(cri.CheckpointContainerRequest(container_id=exits))
        sys.exit("a checkpoint of a removed container was made")
    except grpc.RpcError as fault:
        expect("checkpoint", fault.code(), grpc.StatusCode.NOT_FOUND)
    try:
        runtime.ListMetricDescriptors(cri.ListMetricDescriptorsRequest())
        sys.exit("ListMetricDescriptors was done")
    except grpc.RpcError as fault:
        expect("ListMetricDescriptors", fault.code(), grpc.StatusCode.UNIMPLEMENTED)
    for event in events.seen:
        what = "the second subscriber"
        expect(what, second.next(what, event.container_id, event.container_event_type), event)
    print(f"all as expected; {len(events.seen)} events, the same for both subscribers")


main(*sys.argv[1:])
