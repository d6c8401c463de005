"""The layout of a graph of calls: labels are readable."""

from itertools import combinations

from audit.show.call_graph import HEIGHT, LABEL_HEIGHT, WIDTH, Curve, Line, draw


def area(curve: Curve) -> tuple[float, float, float, float]:
    return curve.left, curve.top, curve.left + curve.width, curve.top + LABEL_HEIGHT


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return min(one[2], other[2]) > max(one[0], other[0]) and min(one[3], other[3]) > max(
        one[1], other[1]
    )


def test_labels_neither_cover_each_other_nor_a_node() -> None:
    lines = [Line("agent", f"step {n}", 100, "100 7 failed") for n in range(3)]
    lines += [Line(f"step {n}", f"tool {m}", 20, "20") for n in range(3) for m in range(4)]
    lines += [Line("agent", "tool 3", 5, "5"), Line("tool 0", "step 0", 1, "1 1 failed")]
    drawing = draw(lines)
    labels = [area(curve) for curve in drawing.curves]
    boxes = [(box.x, box.y, box.x + WIDTH, box.y + HEIGHT) for box in drawing.boxes]
    assert [pair for pair in combinations(labels, 2) if overlap(*pair)] == []
    assert [label for label in labels for box in boxes if overlap(label, box)] == []


def test_nodes_of_a_tall_graph_are_beside_what_they_call() -> None:
    """An agent with twelve sub-agents of twenty tools each: the first ones are at the top."""
    lines = [Line("root", f"agent {n:02}", 20, "20, 2 failed") for n in range(12)]
    lines += [
        Line(f"agent {n:02}", f"tool {n:02} {m:02}", 1, "1, 1 failed")
        for n in range(12)
        for m in range(20)
    ]
    drawing = draw(lines)
    row = {box.node: box.y for box in drawing.boxes}
    assert row["root"] == row["agent 00"] == row["tool 00 00"] == min(row.values())
    assert all(row[f"agent {n:02}"] == row[f"tool {n:02} 00"] for n in range(12))
    places = [(box.x, box.y) for box in drawing.boxes]
    assert len(set(places)) == len(places) == 253
    assert drawing.height == max(y for _, y in places) + HEIGHT + min(row.values())
    labels = [area(curve) for curve in drawing.curves]
    boxes = [(box.x, box.y, box.x + WIDTH, box.y + HEIGHT) for box in drawing.boxes]
    assert [label for label in labels for box in boxes if overlap(label, box)] == []


def test_graph_without_edges_has_no_boxes() -> None:
    assert draw([]).boxes == []
