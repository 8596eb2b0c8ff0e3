"""Sources and receivers of downloads: the uplink carries each file once.

A host that has a model or an image, or the first host that fetches it, serves it to the other hosts
while the download still runs; a seed serves only a few leeches, and leeches serve further hosts.
"""

from collections.abc import Sequence

#: Leeches of one seed. Eight streams, each a tenth of 1 Gbit/s, keep up with an uplink of 100
#: Mbit/s.
FAN_OUT = 8
#: Number of hosts to try in order, if the first host is gone, before the uplink.
MOST_PEERS = 3


def peers(wanting: Sequence[str], holding: Sequence[str], turn: int = 0) -> dict[str, list[str]]:
    """Return for each host the peers to fetch from, the best peer first.

    Args:
        wanting: hosts without the content, in a stable order.
        holding: hosts that already have the content.
        turn: rotation of the order, so that no single host seeds everything.

    Returns:
        Host -> its peers; the list is empty for the single host that fetches from the internet.
    """
    order = [*wanting[turn % len(wanting) :], *wanting[: turn % len(wanting)]] if wanting else []
    roots = list(holding) or order[:1]
    leeches = order if holding else order[1:]
    result: dict[str, list[str]] = {} if holding else {name: [] for name in roots}
    for n, name in enumerate(leeches):
        if n < FAN_OUT * len(roots):
            first = roots[n % len(roots)]
        else:
            first = leeches[n // FAN_OUT - len(roots)]
        # If the first host is gone, only the first of the leeches fetches from outside in its
        # place.
        others = [*roots, *leeches[:n]]
        result[name] = list(dict.fromkeys([first, *others]))[:MOST_PEERS]
    return result
