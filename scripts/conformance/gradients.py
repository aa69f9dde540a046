"""Models with ONNX's operator Gradient. It is no part of a program that anfora can run: the pass Gradient differentiates the rest of
the model instead, and adds a function that returns the outputs of the model."""

import onnx

DOMAIN = "ai.onnx.preview.training"


def differentiated(model):
    """Returns the model without its node Gradient, with the value that is differentiated as its only output, and the names of the
    inputs by which that is. Returns None if the model has no such node, or another form than that of the test cases: one node at
    the values of the inputs, whose outputs follow the value.

    >>> from onnx import TensorProto, helper
    >>> scalar = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [])
    >>> add = helper.make_node("Add", ["a", "b"], ["c"])
    >>> gradient = helper.make_node("Gradient", ["a"], ["da"], domain=DOMAIN, xs=["a"], y="c")
    >>> graph = helper.make_graph([add, gradient], "g", [scalar("a"), scalar("b")], [scalar("c"), scalar("da")])
    >>> model, by = differentiated(helper.make_model(graph))
    >>> [node.op_type for node in model.graph.node], [output.name for output in model.graph.output], by
    (['Add'], ['c'], ['a'])
    >>> differentiated(model)
    """
    graph = model.graph
    found = [node for node in graph.node if (node.domain, node.op_type) == (DOMAIN, "Gradient")]
    if len(found) != 1:
        return None
    node = found[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    by, y = [name.decode() for name in attributes["xs"]], attributes["y"].decode()
    inputs, outputs = ([value.name for value in values] for values in (graph.input, graph.output))
    if list(node.input) != by or not set(by) <= set(inputs) or outputs != [y, *node.output]:
        return None
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    rest.graph.node.remove(node)
    del rest.graph.output[1:]
    return rest, by
