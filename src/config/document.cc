// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/document.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>

namespace baton::config {
namespace {

// Our deepest key is at 5. The bound keeps the parser's recursion, and ours, far from the stack's
// end.
constexpr std::size_t kMaxDepth = 32;

int line_of(const YAML::Mark& mark) { return mark.is_null() ? 0 : mark.line + 1; }

// Role. Builds our tree from the parser's events: unlike its own node graph it keeps keys that
//   stand twice, the line of each key, and costs memory in proportion to the text.
// Confinement. One call of read_document.
// Lifetime. The same.
// Invariants. `open_` holds the maps and lists that were begun and not ended, outermost first.
class TreeBuilder final : public YAML::EventHandler {
 public:
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    attach({.kind = Node::Kind::Null, .line = line_of(mark)}, mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "aliases (*name) are not supported; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    attach({.kind = Node::Kind::Scalar, .line = line_of(mark), .text = value}, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::List, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::Map, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::Mark mark;
    std::optional<Node> key;  // of a map: read, its value not yet
  };

  void open(Node::Kind kind, const YAML::Mark& mark) {
    if (open_.size() == kMaxDepth) throw YAML::ParserException(mark, "nested too deeply");
    open_.push_back({{.kind = kind, .line = line_of(mark)}, mark, {}});
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    attach(std::move(closed.node), closed.mark);
  }

  void attach(Node node, const YAML::Mark& mark) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::List) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      node.key = std::move(parent.key->text);
      node.key_line = parent.key->line;
      parent.key.reset();
      parent.node.items.push_back(std::move(node));
    } else if (node.kind == Node::Kind::Scalar) {
      parent.key = std::move(node);
    } else {
      throw YAML::ParserException(mark, "a key must be plain text");
    }
  }

  Node root_;
  std::vector<Open> open_;
};

// Role. Passes a JSON parser's events to a TreeBuilder.
// Confinement. One call of read_json_or_yaml.
// Lifetime. The same.
class JsonEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEvents(TreeBuilder& tree) : tree_(tree) {}

  bool null() override {
    tree_.OnNull(kNowhere, 0);
    return true;
  }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return scalar(fmt::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(fmt::to_string(value)); }
  bool number_float(number_float_t value, const string_t&) override {
    std::array<char, 512> digits{};  // the longest double has 326
    const auto end = std::to_chars(digits.begin(), digits.end(), value, std::chars_format::fixed);
    return scalar({digits.data(), end.ptr});
  }
  bool string(string_t& value) override { return scalar(value); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override {
    tree_.OnMapStart(kNowhere, "", 0, YAML::EmitterStyle::Flow);
    return true;
  }
  bool key(string_t& value) override { return scalar(value); }
  bool end_object() override {
    tree_.OnMapEnd();
    return true;
  }
  bool start_array(std::size_t) override {
    tree_.OnSequenceStart(kNowhere, "", 0, YAML::EmitterStyle::Flow);
    return true;
  }
  bool end_array() override {
    tree_.OnSequenceEnd();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  static inline const YAML::Mark kNowhere = YAML::Mark::null_mark();

  bool scalar(const std::string& text) {
    tree_.OnScalar(kNowhere, "", 0, text);
    return true;
  }

  TreeBuilder& tree_;
};

bool is_utf8(std::string_view text) {
  try {
    nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

// The parser takes some control characters for the end of the text, and would silently leave out
// the rest.
std::optional<int> line_of_control_character(std::string_view yaml) {
  const auto at = std::ranges::find_if(yaml, [](char c) {
    return (c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
  });
  if (at == yaml.end()) return std::nullopt;
  return 1 + static_cast<int>(std::count(yaml.begin(), at, '\n'));
}

// Whether a tab stands before the first word of the line, where YAML counts columns.
bool is_indented_by_tab(std::string_view yaml, int line) {
  if (line < 1) return false;  // it is not known
  for (; line > 1; --line) yaml.remove_prefix(std::min(yaml.find('\n'), yaml.size() - 1) + 1);
  const std::size_t word = yaml.find_first_not_of(" \t-?");
  return yaml.substr(0, word).contains('\t');
}

}  // namespace

Node* Node::find(std::string_view wanted) {
  const auto at = std::ranges::find(items, wanted, &Node::key);
  return kind != Kind::Map || at == items.end() ? nullptr : &*at;
}

const Node* Node::find(std::string_view wanted) const {
  const auto at = std::ranges::find(items, wanted, &Node::key);
  return kind != Kind::Map || at == items.end() ? nullptr : &*at;
}

std::expected<Node, Problem> read_document(std::string_view yaml, std::string_view file) {
  const auto problem = [&](int line, std::string message) {
    return std::unexpected(Problem{std::string(file), line, "", std::move(message)});
  };
  if (yaml.size() > kMaxBytes) {
    return problem(0, "is larger than 4 MiB; is this a configuration file?");
  }
  if (const auto line = line_of_control_character(yaml)) {
    return problem(*line, "control character in the text; save the file as plain UTF-8");
  }
  if (!is_utf8(yaml)) return problem(0, "is not UTF-8; save the file as plain UTF-8");
  try {
    std::istringstream in{std::string(yaml)};
    YAML::Parser parser(in);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return Node{};
    Node root = builder.take_root();
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return problem(second.take_root().line,
                     "a second YAML document begins; keep one and remove the '---' between them");
    }
    return root;
  } catch (const YAML::Exception& e) {
    const int line = line_of(e.mark);
    if (is_indented_by_tab(yaml, line))
      return problem(line, "a tab in the indentation, where YAML allows only spaces");
    return problem(line, fmt::format("cannot be read as YAML: {}", e.msg));
  } catch (const std::exception& e) {
    return problem(0, fmt::format("cannot be read as YAML: {}", e.what()));
  }
}

std::expected<Node, Problem> read_json_or_yaml(std::string_view text, std::string_view file) {
  TreeBuilder tree;
  JsonEvents events(tree);
  try {
    if (text.size() <= kMaxBytes && nlohmann::json::sax_parse(text, &events)) {
      return tree.take_root();
    }
  } catch (const YAML::Exception& e) {
    return std::unexpected(
        Problem{std::string(file), 0, "", fmt::format("cannot be read as JSON: {}", e.msg)});
  }
  return read_document(text, file);
}

}  // namespace baton::config
