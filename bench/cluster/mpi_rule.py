# SPDX-License-Identifier: MIT
"""Reads the traces of mpi_trace.c and makes a rule from them: the cost of each step of a sort per byte of records.

    mpi_rule.py PREFIX[=PREFIX...] ...     table: each step's cost in each run, of two ranks at least

Every message sent must have been received.
"""
import collections
import glob
import sys

RECORDS, FILL, LEAD, BLOCKS, INDEX = range(1, 6)          # mpi/mpi_team.h
STEPS = "split sort_a sample exchange measure follow write gather".split()

Event = collections.namedtuple("Event", "call peer tag bytes work main wait inside wall inside_wall read written")


def read_rank(path):
    with open(path) as file:
        next(file)
        return [Event(fields[0], *map(int, fields[1:4]), *map(float, fields[4:10]), *map(int, fields[10:]))
                for fields in map(str.split, file)]


def read_run(prefix):
    """The events of each rank."""
    paths = glob.glob(glob.escape(prefix) + ".[0-9]*")
    return [read_rank(path) for path in sorted(paths, key=lambda path: int(path.rsplit(".", 1)[1]))]


def traffic(ranks):
    """Bytes and messages from rank to rank, by tag: as sent, and as received."""
    sent, received = collections.Counter(), collections.Counter()
    for rank, events in enumerate(ranks):
        for e in events:
            if e.call in ("Send", "Isend"):
                sent[rank, e.peer, e.tag] += e.bytes
                sent[rank, e.peer, e.tag, "messages"] += 1
            elif e.call in ("Recv", "Irecv"):
                received[e.peer, rank, e.tag] += e.bytes
                received[e.peer, rank, e.tag, "messages"] += 1
    return sent, received


def steps(events):
    """The step that the events belong to, one after another. A step ends with a call that only it has."""
    step, kinds = "split", []
    for e in events:
        if step == "split" and e.call == "Allreduce" and e.bytes > 4:
            step = "sample"
        elif step == "sample" and e.tag == RECORDS:
            step = "exchange"
        elif step == "exchange" and e.tag != RECORDS:
            step = "measure"
        elif step == "measure" and e.tag in (FILL, LEAD):
            step = "follow"
        elif step == "follow" and e.tag not in (FILL, LEAD):
            step = "write"
        elif step == "write" and e.call == "Bcast":
            step = "gather"
        kinds.append(step)
    # The Allreduce before the one for the sums ends sort A.
    ends = [i for i, kind in enumerate(kinds) if kind == "sample"]
    if ends:
        kinds[ends[0] - 1] = "sort_a"
    return kinds


def rank_costs(events):
    """For each step: CPU seconds of all threads, bytes read and written. For the exchange: also those inside MPI, which
    only the main thread can do. moved: bytes received."""
    cost = collections.defaultdict(float)
    for e, step in zip(events, steps(events)):
        cost[step] += e.work
        cost[step, "read"] += e.read
        cost[step, "written"] += e.written
        if step == "exchange":
            side = "send_main" if e.call == "Isend" else "receive_main"
            cost["exchange"] += e.inside
            cost[side] += e.inside
            cost["moved"] += e.bytes if e.call == "Irecv" else 0
    # Rank 0 cuts the order of all keys after the Gatherv.
    cost["cut"] = sum(e.work for before, e in zip(events, events[1:]) if before.call == "Gatherv")
    cost["list"] = cost["sample"] - cost["cut"]
    return cost


def keeps_own(events):
    """Whether rank 0 keeps its own records and does not send them to itself."""
    return not any(e.tag == RECORDS and e.peer == 0 for e in events)


def run_costs(prefix):
    """Sums over the ranks of a run; n: ranks; bytes: of records, of which each rank sends the same amount."""
    total = collections.defaultdict(float)
    ranks = read_run(prefix)
    for events in ranks:
        for key, value in rank_costs(events).items():
            total[key] += value
    total["n"] = len(ranks)
    total["bytes"] = total["moved"] * (len(ranks) / (len(ranks) - 1) if keeps_own(ranks[0]) else 1)
    return total


def least_costs(prefixes):
    """The least of each number over several runs of one kind. If a virtual machine gets memory that it has not used
    before, 2 MiB may cost 5 ms, so the same run costs twice as much."""
    runs = [run_costs(prefix) for prefix in prefixes]
    return {key: min(run[key] for run in runs) for key in set().union(*runs)}


def main():
    names = "sort_a cut list exchange measure follow write gather".split()
    print("| ranks | GB | " + " | ".join(names) + " | read B/B | written B/B | messages |")
    print("|---:|---:|" + "---:|" * (len(names) + 3))
    for group in sys.argv[1:]:
        prefixes = group.split("=")
        c = least_costs(prefixes)
        sent, received = traffic(read_run(prefixes[0]))
        if sent != received:
            sys.exit("%s: what was sent is not what was received" % prefixes[0])
        messages = sum(n for key, n in sent.items() if key[2:] == (RECORDS, "messages"))
        gb = c["bytes"] / 1e9
        print("| %d | %.3f | " % (c["n"], gb) + " | ".join("%.4f" % (c.get(name, 0) / gb) for name in names)
              + " | %.3f | %.3f | %d |" % (
                  c["sort_a", "read"] / c["bytes"], c["write", "written"] / c["bytes"], messages))


if __name__ == "__main__":
    main()
