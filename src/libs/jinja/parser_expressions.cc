// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/parser.h"
#include "libs/jinja/printing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace baton::jinja {
namespace {

// Python's own parser, which jinja2 leans on, stops at about the same.
constexpr int kMaxTreeDepth = 200;
constexpr std::size_t kMaxNested = 200;

std::optional<Comparison> comparison_of(const Token& token) {
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> kComparisons = {{
      {"==", Comparison::Equal},
      {"!=", Comparison::NotEqual},
      {"<", Comparison::Less},
      {"<=", Comparison::LessEqual},
      {">", Comparison::Greater},
      {">=", Comparison::GreaterEqual},
  }};
  for (const auto& [symbol, comparison] : kComparisons) {
    if (token.is(symbol)) return comparison;
  }
  return std::nullopt;
}

}  // namespace

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
  if (++parser.nesting_ > kMaxNested) {
    raise("line {}: the template is nested deeper than {}", parser.current().line, kMaxNested);
  }
}

void Parser::check_depth(Expression& node) const {
  int deepest = 0;
  node.each_child([&](Expression& child) { deepest = std::max(deepest, child.depth); });
  node.depth = deepest + 1;
  if (node.depth > kMaxTreeDepth) {
    raise("line {}: an expression is nested deeper than {}", node.line, kMaxTreeDepth);
  }
}

ExpressionPtr Parser::expression(Inline conditions) {
  const Nested nested(*this);
  return conditions == Inline::Conditions ? conditional() : disjunction();
}

ExpressionPtr Parser::tuple(Inline conditions, std::string_view end_name, bool in_parentheses) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect(",");
    if (at_tuple_end(end_name)) break;
    parts.push_back(expression(conditions));
    if (!current().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!parts.empty()) return std::move(parts.front());
    if (!in_parentheses) {
      raise("line {}: Expected an expression, got {}", current().line,
            in_quotes(current().description()));
    }
  }
  return bounded(std::make_unique<SequenceExpression>(line, SequenceExpression::Form::Tuple,
                                                      std::move(parts)));
}

ExpressionPtr Parser::conditional() {
  int line = current().line;
  ExpressionPtr node = disjunction();
  while (skip_name("if")) {
    ExpressionPtr test = disjunction();
    ExpressionPtr otherwise;
    if (skip_name("else")) {
      const Nested nested(*this);
      otherwise = conditional();
    }
    node = bounded(std::make_unique<ConditionalExpression>(line, std::move(test), std::move(node),
                                                           std::move(otherwise)));
    line = current().line;
  }
  return node;
}

ExpressionPtr Parser::disjunction() {
  ExpressionPtr left = conjunction();
  while (skip_name("or")) {
    ExpressionPtr right = conjunction();
    const int line = left->line;
    left = bounded(std::make_unique<LogicExpression>(line, LogicExpression::Operation::Or,
                                                     std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr Parser::conjunction() {
  ExpressionPtr left = negation();
  while (skip_name("and")) {
    ExpressionPtr right = negation();
    const int line = left->line;
    left = bounded(std::make_unique<LogicExpression>(line, LogicExpression::Operation::And,
                                                     std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr Parser::negation() {
  if (!current().names("not")) return comparison();
  const Nested nested(*this);
  const int line = next().line;
  return bounded(
      std::make_unique<UnaryExpression>(line, UnaryExpression::Operation::Not, negation()));
}

ExpressionPtr Parser::comparison() {
  ExpressionPtr first = sum();
  std::vector<CompareExpression::Step> steps;
  while (true) {
    CompareExpression::Step step;
    if (const auto how = comparison_of(current())) {
      next();
      step.comparison = *how;
    } else if (skip_name("in")) {
      step.membership = CompareExpression::Membership::In;
    } else if (current().names("not") && ahead().names("in")) {
      next();
      next();
      step.membership = CompareExpression::Membership::NotIn;
    } else {
      break;
    }
    step.operand = sum();
    steps.push_back(std::move(step));
  }
  if (steps.empty()) return first;
  const int line = first->line;
  return bounded(std::make_unique<CompareExpression>(line, std::move(first), std::move(steps)));
}

ExpressionPtr Parser::sum() {
  ExpressionPtr left = concatenation();
  while (current().is("+") || current().is("-")) {
    const auto operation = next().text == "+" ? Arithmetic::Add : Arithmetic::Subtract;
    ExpressionPtr right = concatenation();
    const int line = left->line;
    left = bounded(
        std::make_unique<ArithmeticExpression>(line, operation, std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr Parser::concatenation() {
  ExpressionPtr first = product();
  if (!current().is("~")) return first;
  const int line = first->line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(first));
  while (skip("~")) parts.push_back(product());
  return bounded(std::make_unique<ConcatExpression>(line, std::move(parts)));
}

ExpressionPtr Parser::product() {
  static constexpr std::array<std::pair<std::string_view, Arithmetic>, 4> kProducts = {{
      {"*", Arithmetic::Multiply},
      {"/", Arithmetic::Divide},
      {"//", Arithmetic::FloorDivide},
      {"%", Arithmetic::Modulo},
  }};
  ExpressionPtr left = power();
  while (true) {
    const auto* found = std::ranges::find_if(
        kProducts, [&](const auto& product) { return current().is(product.first); });
    if (found == kProducts.end()) return left;
    next();
    ExpressionPtr right = power();
    const int line = left->line;
    left = bounded(std::make_unique<ArithmeticExpression>(line, found->second, std::move(left),
                                                          std::move(right)));
  }
}

ExpressionPtr Parser::power() {
  ExpressionPtr left = unary(true);
  while (skip("**")) {
    ExpressionPtr right = unary(true);
    const int line = left->line;
    left = bounded(std::make_unique<ArithmeticExpression>(line, Arithmetic::Power, std::move(left),
                                                          std::move(right)));
  }
  return left;
}

ExpressionPtr Parser::unary(bool with_filters) {
  const Nested nested(*this);
  const int line = current().line;
  ExpressionPtr node;
  if (skip("-")) {
    node = bounded(std::make_unique<UnaryExpression>(line, UnaryExpression::Operation::Negative,
                                                     unary(false)));
  } else if (skip("+")) {
    node = bounded(std::make_unique<UnaryExpression>(line, UnaryExpression::Operation::Positive,
                                                     unary(false)));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filtered(std::move(node)) : std::move(node);
}

}  // namespace baton::jinja
