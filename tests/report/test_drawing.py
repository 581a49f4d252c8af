"""Drawings of graphs, made without torch."""

from __future__ import annotations

from xml.dom import minidom

from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.record.stack import Frame
from compilescope.report.graph_drawing import draw_graph


def chain(length: int) -> Graph:
    nodes = [Node("x", "placeholder", "x", (), (TensorInfo((2, "s0"), "float32"),))]
    for number in range(length):
        before = nodes[-1].name
        nodes.append(Node(f"n{number}", "call_function", "aten.mul.Tensor", (before, "x")))
    return Graph((*nodes, Node("output", "output", "output", (nodes[-1].name,))))


def drawn(graph: Graph, **options: object) -> minidom.Document:
    return minidom.parseString(draw_graph(graph, "a graph", **options))  # type: ignore[arg-type]


def rectangles(picture: minidom.Document) -> list[tuple[float, float]]:
    return [
        (float(each.getAttribute("x")), float(each.getAttribute("y")))
        for each in picture.getElementsByTagName("rect")
    ]


def test_an_empty_graph_is_a_picture_too() -> None:
    assert rectangles(drawn(Graph(()))) == []


def test_a_node_stands_below_what_it_needs_and_none_on_another() -> None:
    picture = drawn(chain(20))
    places = rectangles(picture)
    assert len(set(places)) == len(places) == 22
    heights = [y for _, y in places]
    assert heights == sorted(heights)
    assert len(picture.getElementsByTagName("path")) == 20 * 2 - 1 + 1


def test_a_wide_level_takes_several_rows() -> None:
    inputs = tuple(Node(f"p{n}", "placeholder", f"p{n}") for n in range(50))
    total = Node("sum", "call_function", "aten.stack.default", tuple(n.name for n in inputs))
    places = rectangles(drawn(Graph((*inputs, total))))
    assert len(set(places)) == 51
    assert max(x for x, _ in places) < 2000


def test_a_graph_that_is_too_large_is_cut_off_and_says_so() -> None:
    picture = drawn(chain(1000), most=100)
    assert len(rectangles(picture)) == 100
    assert "100 of 1002 nodes" in picture.getElementsByTagName("title")[0].firstChild.data


def test_words_of_a_program_are_escaped() -> None:
    evil = '</title><script>alert("x")</script>\x00\x1b[31m\ud800'
    frame = Frame(evil, 3, evil, source=evil)
    node = Node(evil, "call_function", evil, (), (TensorInfo((1,), evil),), frame)
    text = draw_graph(Graph((node,)), evil, {evil: evil})
    assert "<script>" not in text
    picture = minidom.parseString(text)
    assert "marked" in picture.getElementsByTagName("g")[0].getAttribute("class")
