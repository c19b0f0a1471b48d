"""What the measured comparison says about the methods of the paper's Table 1, in words."""

from paper_results import Row


def rows_of(read: Row, method: str) -> list[Row]:
    """Rows of one method."""
    return [row for row in read["rows"] if row["method"] == method]


def features_errors(read: Row) -> str:
    """Error rates with features over those with plain data."""
    plain = 1 - read["rows"][0]["accuracy"]["mean"]
    return "; ".join(
        f"{100 * ((1 - row['accuracy']['mean']) / plain - 1):+.0f} % at "
        + ("no noise" if row["noise"] is None else f"noise {row['noise']:g} times the features")
        for row in rows_of(read, "features with noise")
    )


def mole_penalty(read: Row) -> str:
    """Accuracy with deliveries against plain data."""
    plain = read["rows"][0]["accuracy"]["mean"]
    return (
        "; ".join(
            f"accuracy {100 * (row['accuracy']['mean'] - plain):+.1f} points in "
            + ("blocks of rows" if row["tile"] is None else f"tiles of {row['tile']}")
            for row in rows_of(read, "MoLe")
        )
        + f" ({read['train_images']:,} images)"
    )


def features_bytes(read: Row) -> str:
    """What features take on the wire."""
    row = rows_of(read, "features with noise")[0]
    return (
        f"{row['bytes'] / read['elements']:.1f} times in 32 bits, "
        f"{row['values'] / read['elements']:.1f} times the elements (16 channels)"
    )


def features_macs(read: Row) -> str:
    """What the provider computes for features."""
    row = rows_of(read, "features with noise")[0]
    return (
        f"provider {row['provider_macs']:,} multiplications, "
        f"{100 * row['provider_macs'] / read['network_macs']:.0f} % of the network"
    )


def features_attacked(read: Row) -> str:
    """How often the nearest candidate was the right one."""
    return "; ".join(
        f"{100 * row['nearest']:.0f} % of {row['candidates']:,} picked out at "
        + ("no noise" if row["noise"] is None else f"noise {row['noise']:g}")
        for row in rows_of(read, "features with noise")
    )
