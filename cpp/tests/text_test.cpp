// The text format: what is printed is read again, and what cannot be read is a GraphError.
#include "check.h"
#include "error.h"
#include "graph.h"
#include "random_graph.h"

using namespace mini;
using namespace mini::test;

namespace {

const std::string example =
    "mini 1\n"
    "%0 = input : f32[4, 8] strides=[1, 4]\n"
    "%1 = constant value=0.5 : f32[4, 8]\n"
    "%2 = mul %0 %1 : f32[4, 8]\n"
    "%3 = sum %2 dims=[1] keepdim=1 : f32[4, 1]\n"
    "return %2 %3\n";

void round_trips() {
  const Graph graph = parse_graph(example);
  check_equal(graph.size(), 4);
  check_equal(graph.outputs.size(), size_t{2});
  check(graph[0].attributes.strides == Strides{1, 4}, "strides after the type are read");
  check(graph[3].attributes.keepdim, "keepdim is read");
  check_equal(to_text(parse_graph(to_text(graph))), to_text(graph));
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = to_text(RandomGraph(seed).graph);
    check_equal(to_text(parse_graph(text)), text);
  }
}

void numbers_keep_their_bits() {
  for (const char* number :
       {"-0", "0", "0.1", "1e-45", "3.4028235e+38", "inf", "-inf", "nan", "16777217"}) {
    const std::string text =
        std::string("mini 1\n%0 = constant value=") + number + " : f64[]\nreturn %0\n";
    const Graph graph = parse_graph(text);
    check_equal(to_text(parse_graph(to_text(graph))), to_text(graph));
    check_contains(to_text(graph), number);
  }
  const Graph rounded = parse_graph("mini 1\n%0 = constant value=16777217 : f32[]\nreturn %0\n");
  check_contains(to_text(rounded), "16777216");
  const Graph whole =
      parse_graph("mini 1\n%0 = constant value=-9223372036854775808 : i64[]\nreturn %0\n");
  check_equal(whole[0].attributes.value.i, std::numeric_limits<int64_t>::min());
}

void spaces_and_comments() {
  const Graph graph = parse_graph(
      "# a graph\r\n  mini 1\r\n\n%0=input:f32[ 2,3 ]  # two rows\n\t%1 = neg %0 : f32[2, "
      "3]\nreturn %1");
  check_equal(graph.size(), 2);
  check_equal(parse_graph("mini 1\nreturn").outputs.size(), size_t{0});
}

// One line after "%0 = input : f32[2, 3]", "%1 = input : i64[4]", "%2 = input : bool[2, 3]".
void bad_line(const std::string& line, const std::string& part,
              const Where& where = Where::current()) {
  const std::string text =
      "mini 1\n%0 = input : f32[2, 3]\n%1 = input : i64[4]\n%2 = input : bool[2, 3]\n" + line +
      "\nreturn %0\n";
  check_throws<GraphError>([&] { parse_graph(text); }, "line 5: ", where);
  check_throws<GraphError>([&] { parse_graph(text); }, part, where);
}

void bad_lines() {
  bad_line("%3 = ad %0 %0 : f32[2, 3]", "no operator 'ad'");
  bad_line("%4 = neg %0 : f32[2, 3]", "expected %3");
  bad_line("%3 = neg %3 : f32[2, 3]", "%3, which does not exist");
  bad_line("%3 = neg %99999999999999999999 : f32[2, 3]", "whole number");
  bad_line("%3 = neg %-1 : f32[2, 3]", "no node");
  bad_line("%3 = neg %0", "type is missing");
  bad_line("%3 = neg %0 : f16[2, 3]", "not a dtype");
  bad_line("%3 = neg %0 : f32[2, 4]", "gives f32[2, 3]");
  bad_line("%3 = neg %0 : f32[2, 3", "expected ']'");
  bad_line("%3 = neg %0 : f32[2,, 3]", "whole number");
  bad_line("%3 = neg %0 %0 : f32[2, 3]", "takes 1 input, not 2");
  bad_line("%3 = neg %2 : bool[2, 3]", "does not take bool");
  bad_line("%3 = exp %1 : i64[4]", "does not take i64");
  bad_line("%3 = add %0 %2 : f32[2, 3]", "takes equal types");
  bad_line("%3 = neg %0 size=4 : f32[2, 3]", "no attribute 'size'");
  bad_line("%3 = neg %0 dim : f32[2, 3]", "expected '='");
  bad_line("%3 = neg %0 ! : f32[2, 3]", "cannot be read");
  bad_line("%3 = input : f32[-1]", "size -1");
  bad_line("%3 = input : f32[4294967296, 4294967296]", "no memory");
  bad_line("%3 = input : f32[0, 9223372036854775807, 3]", "no memory");
  bad_line("%3 = input : f32[3] strides=[9223372036854775807]", "that large");
  bad_line("%3 = input : f32[3] strides=[-1]", "negative");
  bad_line("%3 = input : f32[3] strides=[1, 1]", "one stride");
  bad_line("%3 = constant value=x : f32[]", "not a number");
  bad_line("%3 = constant value=1e999 : f64[]", "not a number");
  bad_line("%3 = constant value=1.5 : i64[]", "not a number");
  bad_line("%3 = constant : f32[]", "not a number");
  bad_line("%3 = constant value=2 : bool[]", "0 or 1");
  bad_line("%3 = iota : f32[2, 2]", "one dimension");
  bad_line("%3 = sum %0 dims=[2] : f32[2]", "no dimension 2");
  bad_line("%3 = sum %0 dims=[-1] : f32[2]", "no dimension -1");
  bad_line("%3 = sum %0 dims=[1, 1] : f32[2]", "twice");
  bad_line("%3 = sum %2 dims=[1] : bool[2]", "does not take bool");
  bad_line("%3 = any %0 dims=[1] : f32[2]", "bool only");
  bad_line("%3 = argmax %0 dims=[0, 1] : i64[]", "one dimension");
  bad_line("%3 = where %0 %0 %0 : f32[2, 3]", "must be bool");
  bad_line("%3 = where %2 %0 %1 : f32[2, 3]", "equal shapes");
  bad_line("%3 = matmul %0 %0 : f32[2, 3]", "cannot be multiplied");
  bad_line("%3 = reshape %0 : f32[7]", "number of elements");
  bad_line("%3 = permute %0 dims=[0] : f32[2]", "each dimension once");
  bad_line("%3 = permute %0 dims=[0, 0] : f32[2, 2]", "twice");
  bad_line("%3 = expand %0 : f32[4, 3]", "cannot become");
  bad_line("%3 = expand %0 : f32[1, 2, 3]", "cannot become");
  bad_line("%3 = slice %0 dim=1 start=2 end=4 : f32[2, 2]", "0 <= start");
  bad_line("%3 = slice %0 dim=1 end=3 step=0 : f32[2, 3]", "step > 0");
  bad_line("%3 = cat : f32[2, 3]", "at least one");
  bad_line("%3 = cat %0 %1 : f32[2, 3]", "differ");
  bad_line("%3 = take %0 %0 : f32[2, 3, 3]", "must be i64");
  bad_line("%3 = gather %0 %1 : f32[4]", "as many dimensions");
  bad_line("return %7", "does not exist");
  bad_line("hello", "expected a node or 'return'");
}

void bad_graphs() {
  check_throws<GraphError>([] { parse_graph(""); }, "'return' is missing");
  check_throws<GraphError>([] { parse_graph("mini 2\nreturn\n"); }, "version");
  check_throws<GraphError>([] { parse_graph("mini 1\nreturn\nreturn\n"); }, "after 'return'");
  check_throws<GraphError>(
      [] {
        parse_graph("mini 1\n%0 = input : f32[0, 3]\n%1 = max %0 dims=[0] : f32[3]\nreturn %1");
      },
      "empty dimension");
  std::string tall = "mini 1\n%0 = input : bool[4398046511104]\n";
  tall += "%1 = cat %0 %0 : bool[8796093022208]\n%2 = cat %1 %1 : bool[17592186044416]\nreturn %0";
  check_throws<GraphError>([&] { parse_graph(tall); }, "no memory");
  Graph backwards = parse_graph(example);
  backwards[2].inputs[0] = 3;
  check_throws<GraphError>([&] { verify(backwards); }, "%2");
  Graph unlisted = parse_graph(example);
  unlisted.inputs.clear();
  check_throws<GraphError>([&] { verify(unlisted); }, "list of inputs");
}

// Either it is a graph, and then it is printed and read again, or it is a GraphError.
void survives(const std::string& text) {
  try {
    const std::string printed = to_text(parse_graph(text));
    check_equal(to_text(parse_graph(printed)), printed);
  } catch (const GraphError& error) {
    check(std::string_view(error.what()).size() > 3, "an error without words");
  }
}

void garbage() {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string text = to_text(RandomGraph(seed, 6).graph);
    Random random(seed + 1000);
    const auto place = [&](const std::string& in) {
      return static_cast<size_t>(random.below(static_cast<int64_t>(in.size())));
    };
    for (int i = 0; i < 60; ++i) {
      std::string changed = text;
      switch (i % 6) {
        case 0: changed.resize(place(text)); break;
        case 1: changed[place(text)] = static_cast<char>(random.below(256)); break;
        case 2: changed.erase(place(text), 1 + static_cast<size_t>(random.below(9))); break;
        case 3: changed.insert(place(text), text.substr(place(text), 12)); break;
        case 4: changed.insert(place(text), std::to_string(random.next())); break;
        default: std::swap(changed[place(text)], changed[place(text)]);
      }
      survives(changed);
    }
  }
}

}  // namespace

int main() {
  round_trips();
  numbers_keep_their_bits();
  spaces_and_comments();
  bad_lines();
  bad_graphs();
  garbage();
  return finish();
}
