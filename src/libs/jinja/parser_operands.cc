// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/parser.h"
#include "libs/jinja/printing.h"

#include <utility>

namespace baton::jinja {

ExpressionPtr Parser::primary() {
  const Token& token = current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::Name: {
      const std::string name = next().text;
      if (name == "true" || name == "True") return std::make_unique<Constant>(line, Value(true));
      if (name == "false" || name == "False") return std::make_unique<Constant>(line, Value(false));
      if (name == "none" || name == "None") return std::make_unique<Constant>(line, Value::none());
      return std::make_unique<NameExpression>(line, name);
    }
    case TokenKind::String: {
      std::string text;
      while (current().kind == TokenKind::String) text += next().text;
      return std::make_unique<Constant>(line, Value(std::move(text)));
    }
    case TokenKind::Integer:
    case TokenKind::Float:
      return std::make_unique<Constant>(line, next().number);
    case TokenKind::Operator:
      if (skip("(")) {
        ExpressionPtr node = tuple(Inline::Conditions, {}, true);
        expect(")");
        return node;
      }
      if (token.is("[")) return list();
      if (token.is("{")) return dict();
      break;
    default:
      break;
  }
  raise("line {}: unexpected {}", line, in_quotes(token.description()));
}

ExpressionPtr Parser::list() {
  const int line = current().line;
  expect("[");
  std::vector<ExpressionPtr> items;
  while (!current().is("]")) {
    if (!items.empty()) expect(",");
    if (current().is("]")) break;
    items.push_back(expression());
  }
  expect("]");
  return bounded(
      std::make_unique<SequenceExpression>(line, SequenceExpression::Form::List, std::move(items)));
}

ExpressionPtr Parser::dict() {
  const int line = current().line;
  expect("{");
  std::vector<DictExpression::Pair> entries;
  while (!current().is("}")) {
    if (!entries.empty()) expect(",");
    if (current().is("}")) break;
    ExpressionPtr key = expression();
    expect(":");
    entries.emplace_back(std::move(key), expression());
  }
  expect("}");
  return bounded(std::make_unique<DictExpression>(line, std::move(entries)));
}

ExpressionPtr Parser::postfix(ExpressionPtr node) {
  while (true) {
    if (current().is(".") || current().is("[")) {
      node = subscript(std::move(node));
    } else if (current().is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::filtered(ExpressionPtr node) {
  while (true) {
    if (skip("|")) {
      node = filter(std::move(node));
    } else if (current().names("is")) {
      node = tested(std::move(node));
    } else if (current().is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr node) {
  const Token token = next();
  if (token.text == ".") {
    const Token name = next();
    if (name.kind == TokenKind::Name) {
      return bounded(std::make_unique<AttributeExpression>(token.line, std::move(node), name.text));
    }
    if (name.kind != TokenKind::Integer) raise("line {}: expected name or number", name.line);
    return bounded(std::make_unique<ItemExpression>(
        token.line, std::move(node), std::make_unique<Constant>(name.line, name.number)));
  }
  std::vector<ExpressionPtr> keys;
  while (!current().is("]")) {
    if (!keys.empty()) expect(",");
    keys.push_back(subscribed());
  }
  expect("]");
  if (keys.size() == 1) {
    if (auto* slice = dynamic_cast<SliceExpression*>(keys[0].get()); slice && !slice->object) {
      slice->object = std::move(node);
      return bounded(std::move(keys[0]));
    }
    return bounded(
        std::make_unique<ItemExpression>(token.line, std::move(node), std::move(keys[0])));
  }
  for (const auto& key : keys) {
    const auto* slice = dynamic_cast<const SliceExpression*>(key.get());
    if (slice != nullptr && !slice->object) {
      raise("line {}: slices in more than one dimension are not supported", token.line);
    }
  }
  auto keys_tuple = bounded(std::make_unique<SequenceExpression>(
      token.line, SequenceExpression::Form::Tuple, std::move(keys)));
  return bounded(
      std::make_unique<ItemExpression>(token.line, std::move(node), std::move(keys_tuple)));
}

ExpressionPtr Parser::subscribed() {
  const int line = current().line;
  ExpressionPtr start;
  if (!current().is(":")) {
    start = expression();
    if (!current().is(":")) return start;
  }
  expect(":");
  const auto ends = [&] { return current().is("]") || current().is(","); };
  ExpressionPtr stop = ends() || current().is(":") ? nullptr : expression();
  ExpressionPtr step = skip(":") && !ends() ? expression() : nullptr;
  return std::make_unique<SliceExpression>(line, std::move(start), std::move(stop),
                                           std::move(step));
}

ExpressionPtr Parser::tested(ExpressionPtr node) {
  const int line = next().line;
  const bool negated = skip_name("not");
  std::string name = expect_name();
  while (skip(".")) name += "." + expect_name();
  CallArguments arguments;
  const Token& token = current();
  if (token.is("(")) {
    arguments = call_arguments();
  } else if ((token.kind == TokenKind::Name || token.kind == TokenKind::String ||
              token.kind == TokenKind::Integer || token.kind == TokenKind::Float || token.is("[") ||
              token.is("{")) &&
             !token.names("else") && !token.names("or") && !token.names("and")) {
    if (token.names("is")) raise("line {}: You cannot chain multiple tests with is", token.line);
    const Nested nested(*this);
    arguments.positional.push_back(postfix(primary()));
  }
  ExpressionPtr test = bounded(std::make_unique<TestExpression>(
      line, std::move(node), std::move(name), std::move(arguments)));
  if (!negated) return test;
  return bounded(
      std::make_unique<UnaryExpression>(line, UnaryExpression::Operation::Not, std::move(test)));
}

CallArguments Parser::call_arguments() {
  const int line = current().line;
  expect("(");
  CallArguments arguments;
  const auto ensure = [&](bool holds) {
    if (!holds) raise("line {}: invalid syntax for function call expression", line);
  };
  for (bool first = true; !current().is(")"); first = false) {
    if (!first) {
      expect(",");
      if (current().is(")")) break;
    }
    if (skip("*")) {
      ensure(!arguments.spread && !arguments.spread_named);
      arguments.spread = expression();
    } else if (skip("**")) {
      ensure(!arguments.spread_named);
      arguments.spread_named = expression();
    } else if (current().kind == TokenKind::Name && ahead().is("=")) {
      ensure(!arguments.spread_named);
      auto name = make<Text>(next().text);
      next();
      for (const auto& [known, value] : arguments.named) {
        if (known->view() == name->view()) {
          raise("line {}: keyword argument repeated: {}", line, name->view());
        }
      }
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      ensure(!arguments.spread && !arguments.spread_named && arguments.named.empty());
      arguments.positional.push_back(expression());
    }
  }
  expect(")");
  return arguments;
}

ExpressionPtr Parser::call(ExpressionPtr node) {
  const int line = current().line;
  CallArguments arguments = call_arguments();
  return bounded(std::make_unique<CallExpression>(line, std::move(node), std::move(arguments)));
}

}  // namespace baton::jinja
