#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One sort over MPI on a described cluster, simulated with SimGrid (S4U): prints when each step ends, as JSON.

    simulate.py JSON      the settings, which cluster.py makes

The steps are those of doc/mpi.md, by one actor for each rank, and two while records are exchanged. Compute uses the
rank's cores, work of the main thread a separate core, files a file system that all share, blocks and runs scratch of
the node. Each figure per byte is measured (mpi_rule.py). doc/dev/cluster.md lists what is left out.
"""
import json
import math
import sys

from simgrid import Actor, Barrier, Comm, Engine, LinkInRoute, Mailbox, NetZone, this_actor

PIECES = 64                      # of a rank's bytes, at least, so that computing and moving overlap
LOCAL = 10e9                     # bytes/s from a rank to another on its node
UNIT = 1e9                       # a second of work is this many bytes of a link
SAMPLE_SIZE, SPLITTER_SIZE = 16, 32   # mpi/key_samples.c, mpi/splitter.h
KEPT = 2.15                      # a rank keeps its own records if -m has this many times their bytes: rank_exchange.c


def samples(ranks):
    """For each rank (mpi/key_samples.c)."""
    return min(8192, max(2048, 2**18 // ranks))


class Cluster:
    """A shared resource is a link of SimGrid, and its users share it fairly: networks, the file system, scratch, and
    also cores, whose seconds of work are bytes of a link (Python's binding of 3.32 stops when it puts work on
    another host)."""

    def __init__(self, c):
        self.c, zone = c, NetZone.create_full_zone("cluster")
        self.n = c["nodes"] * c["ranks_per_node"]
        self.nodes = [zone.create_host("node%d" % i, 1) for i in range(c["nodes"])]
        self.files = zone.create_host("files", 1)
        self.connect(zone)
        self.reads = self.resources(zone, c["nodes"], "scratch_read", c["scratch_read"])
        self.writes = self.resources(zone, c["nodes"], "scratch_write", c["scratch_write"])
        speed = c["cores"] / c["ranks_per_node"] * c["efficiency"]
        self.cores = self.resources(zone, self.n, "cores", speed * UNIT)
        self.mains = self.resources(zone, self.n, "main", UNIT)
        zone.seal()

    def resources(self, zone, n, name, rate):
        """n pairs of hosts; data sent from one to the other have that rate."""
        return [self.route(zone, zone.create_host("%s_%d" % (name, i), 1), zone.create_host("%s.%d" % (name, i), 1),
                           self.link(zone, "%s%d" % (name, i), rate)) for i in range(n)]

    @staticmethod
    def link(zone, name, rate, latency=0):
        made = zone.create_link(name, float(rate))
        made.set_latency(latency)
        return made

    @staticmethod
    def route(zone, a, b, *way):
        zone.add_route(a.netpoint, b.netpoint, None, None, [LinkInRoute(link) for link in way], False)
        return a, b

    def connect(self, zone):
        def links(name, rate, latency=0):
            return [self.link(zone, "%s%d" % (name, i), rate, latency) for i in range(len(self.nodes))]

        up, down = (links(name, self.c["network"], self.c["latency"] / 2) for name in ("up", "down"))
        client, inside = links("client", self.c["files_node"]), links("inside", LOCAL)
        shared = self.link(zone, "shared", self.c["files"])
        for i, a in enumerate(self.nodes):
            beside = self.c.get("files_beside_network")
            self.route(zone, a, self.files, *([] if beside else [up[i]]), client[i], shared)
            self.route(zone, self.files, a, shared, client[i], *([] if beside else [down[i]]))
            for j, b in enumerate(self.nodes):
                self.route(zone, a, b, *([inside[i]] if i == j else [up[i], down[j]]))

    def node(self, rank):
        return rank // self.c["ranks_per_node"]

    def compute(self, rank, seconds, main=False):
        """Starts this many CPU seconds, on all cores or on the main thread."""
        return Comm.sendto_async(*(self.mains if main else self.cores)[rank], max(int(seconds * UNIT), 1))

    def read(self, rank, size):
        return Comm.sendto_async(self.files, self.nodes[self.node(rank)], max(int(size), 1))

    def write(self, rank, size):
        return Comm.sendto_async(self.nodes[self.node(rank)], self.files, max(int(size), 1))


class Sort:
    """All ranks of one sort; `ends` has the time at which the last rank ended each step."""

    def __init__(self, cluster, c):
        self.cluster, self.c, self.rule, self.n = cluster, c, c["rule"], cluster.n
        self.bytes = c["bytes"] / self.n                       # of a rank's records
        self.spills = self.bytes * KEPT > c["memory"] / c["ranks_per_node"]
        self.per_rank = math.ceil(PIECES / self.n)             # pieces from one rank to another
        self.barrier, self.ends = Barrier(self.n), {}
        self.done = [Barrier(3) for _ in range(self.n)]

    # ---- what all steps need ----

    def together(self, step):
        """The Allreduce at the end of a step."""
        self.barrier.wait()
        this_actor.sleep_for(2 * self.c["latency"] * math.ceil(math.log2(self.n)) if self.n > 1 else 0)
        self.ends[step] = Engine.clock

    def cost(self, step):
        spilled = self.rule.get("spilled_" + step, 0) if self.spills else 0
        return (self.rule[step] + spilled) / 1e9

    def disk(self, rank, write, share):
        """Starts the scratch part of a piece."""
        pairs = self.cluster.writes if write else self.cluster.reads
        return Comm.sendto_async(*pairs[self.cluster.node(rank)], max(1, int(share)))

    def stream(self, rank, seconds, moves):
        """Pieces of compute, each beside moves of the next: moves are (function, bytes of all)."""
        before = []
        for _ in range(PIECES):
            now = [self.cluster.compute(rank, seconds / PIECES)] + [move(size / PIECES) for move, size in moves]
            for activity in before:
                activity.wait()
            before = now
        for activity in before:
            activity.wait()

    # ---- steps ----

    def sort_a(self, rank):
        moves = [(lambda size: self.cluster.read(rank, size), self.bytes * self.rule["in_ratio"])]
        if self.spills:
            moves.append((lambda size: self.disk(rank, True, size), self.bytes * self.rule["spill_ratio"]))
        self.stream(rank, self.bytes * self.cost("sort_a"), moves)
        self.together("sort A")

    def splitters(self, rank):
        if not self.spills:
            self.cluster.compute(rank, self.bytes * self.cost("list"), main=True).wait()
        if rank > 0:
            Mailbox.by_name("samples").put_async(rank, samples(self.n) * SAMPLE_SIZE).wait()
            Mailbox.by_name("splitters%d" % rank).get()
        else:
            for _ in range(1, self.n):
                Mailbox.by_name("samples").get()
            count = samples(self.n) * self.n
            self.cluster.compute(0, count * self.rule["cut"] * math.log2(count), main=True).wait()
            for i in range(1, self.n):
                Mailbox.by_name("splitters%d" % i).put(0, SPLITTER_SIZE * self.n)
        self.together("splitters")

    def partners(self, rank, sends):
        """In memory each rank begins with its neighbour and keeps its own records; otherwise all go from 0 to the last
        (exchange.h)."""
        if self.spills:
            return range(self.n)
        return [(rank + (-i if sends else i)) % self.n for i in range(1, self.n)]

    def piece_cost(self, side, size):
        """CPU seconds of a piece: of all threads, half of the exchange on each side, and of the main thread only."""
        whole, alone = size * self.cost("exchange") / 2, size * self.rule[side + "_main"] / 1e9
        return max(whole - alone, 0), alone

    def send(self, rank):
        size, on_way = self.bytes / self.n / self.per_rank, []
        whole, alone = self.piece_cost("send", size)
        for to in self.partners(rank, True):
            box = Mailbox.by_name("%d-%d" % (rank, to))
            for _ in range(self.per_rank):
                copies = [self.cluster.compute(rank, whole)]
                if self.spills:
                    copies.append(self.disk(rank, False, size * self.rule["spill_ratio"]))
                self.cluster.compute(rank, alone, main=True).wait()
                for activity in copies + on_way:
                    activity.wait()
                on_way = [box.put_async(rank, max(1, int(size)))]
        for activity in on_way:
            activity.wait()
        self.done[rank].wait()

    def receive(self, rank):
        size, sorts = self.bytes / self.n / self.per_rank, []
        whole, alone = self.piece_cost("receive", size)
        boxes = [Mailbox.by_name("%d-%d" % (source, rank)) for source in self.partners(rank, False)
                 for _ in range(self.per_rank)]
        coming = boxes[0].get_async() if boxes else None
        for i in range(len(boxes)):
            coming[0].wait()
            if i + 1 < len(boxes):                             # arrives while the main thread has this one
                coming = boxes[i + 1].get_async()
            self.cluster.compute(rank, alone, main=True).wait()
            if len(sorts) > 2:
                for activity in sorts.pop(0):
                    activity.wait()
            sorts.append([self.cluster.compute(rank, whole)])
            if self.spills:
                sorts[-1].append(self.disk(rank, True, size * self.rule["spill_ratio"]))
        for activity in sum(sorts, []):
            activity.wait()
        self.done[rank].wait()

    def exchange(self, rank):
        node = self.cluster.nodes[self.cluster.node(rank)]
        Actor.create("send%d" % rank, node, self.send, rank)
        Actor.create("receive%d" % rank, node, self.receive, rank)
        self.done[rank].wait()
        self.together("exchange")

    def boundary(self, rank):
        runs = []
        if self.spills:
            runs.append((lambda size: self.disk(rank, False, size), self.bytes * self.rule["spill_ratio"]))
        self.stream(rank, self.bytes * self.cost("measure"), runs)
        self.together("measure")
        if rank > 0:
            Mailbox.by_name("fill%d" % rank).get()
        self.cluster.compute(rank, self.rule["follow"], main=True).wait()
        if rank + 1 < self.n:
            Mailbox.by_name("fill%d" % (rank + 1)).put(0, 4)
        self.together("boundary")

    def write(self, rank):
        out, moves = self.bytes * self.rule["out_ratio"], []
        if self.spills:
            moves.append((lambda size: self.disk(rank, False, size), self.bytes * self.rule["spill_ratio"]))
        if rank > 0:
            moves.append((lambda size: self.disk(rank, True, size), out))
        else:
            moves.append((lambda size: self.cluster.write(rank, size), out))
        self.stream(rank, self.bytes * self.cost("write"), moves)
        self.together("blocks")

    def take(self, source, out):
        """Rank 0 takes a rank's blocks: it receives, then it writes, one piece after another."""
        for _ in range(PIECES):
            Mailbox.by_name("blocks%d" % source).get()
            self.cluster.write(0, out / PIECES).wait()

    def gather(self, rank):
        out, own = self.bytes * self.rule["out_ratio"], self.c["own_writes"]
        beside = self.cluster.node(rank) == 0                  # rank 0's file can be opened there
        if rank > 0 and (own or beside):
            self.stream(rank, 0, [(lambda size: self.disk(rank, False, size), out),
                                  (lambda size: self.cluster.write(rank, size), out)])
        elif rank > 0:
            for _ in range(PIECES):
                self.disk(rank, False, out / PIECES).wait()
                Mailbox.by_name("blocks%d" % rank).put(0, max(1, int(out / PIECES)))
        elif not own:
            for source in range(self.c["ranks_per_node"], self.n):
                self.take(source, out)
        self.together("output")

    def rank(self, rank):
        for step in (self.sort_a, self.splitters, self.exchange, self.boundary, self.write, self.gather):
            step(rank)


def main():
    engine = Engine([sys.argv[0], "--log=root.thres:critical", "--cfg=network/model:CM02",
                     "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:1e15", "--cfg=contexts/stack-size:256"])
    c = json.loads(sys.argv[1])
    cluster = Cluster(c)
    sort = Sort(cluster, c)
    for rank in range(sort.n):
        Actor.create("rank%d" % rank, cluster.nodes[cluster.node(rank)], sort.rank, rank)
    engine.run()
    print(json.dumps({"ends": sort.ends, "s": Engine.clock, "spills": sort.spills}))


if __name__ == "__main__":
    main()
