// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/failure.h"
#include "libs/jinja/parser.h"
#include "libs/jinja/printing.h"

#include <algorithm>
#include <array>
#include <utility>

namespace baton::jinja {
namespace {

// Tags of jinja2 that need other templates, which a chat template does not have.
constexpr std::array<std::string_view, 6> kRefusedTags = {"extends", "include", "import",
                                                          "from",    "block",   "autoescape"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Block Parser::parse() {
  Block whole = block({});
  if (current().kind != TokenKind::End) unexpected("end of template");
  return whole;
}

Block Parser::block(EndTags end_tags) {
  const Nested nested(*this);
  Block statements;
  while (current().kind != TokenKind::End) {
    const int line = current().line;
    switch (current().kind) {
      case TokenKind::Data:
        statements.push_back(std::make_unique<TextStatement>(line, next().text));
        break;
      case TokenKind::VariableBegin:
        next();
        statements.push_back(std::make_unique<OutputStatement>(line, tuple(Inline::Conditions)));
        expect(TokenKind::VariableEnd);
        break;
      default:
        expect(TokenKind::BlockBegin);
        if (current().kind == TokenKind::Name &&
            among({end_tags.begin(), end_tags.size()}, current().text)) {
          return statements;
        }
        if (current().names("print")) {
          print_statement(statements);
        } else {
          statements.push_back(statement());
        }
        expect(TokenKind::BlockEnd);
        break;
    }
  }
  if (end_tags.size() > 0) {
    raise("line {}: Unexpected end of template. Jinja was looking for the tag {}.", current().line,
          in_quotes(*end_tags.begin()));
  }
  return statements;
}

Block Parser::tag_body(EndTags end_tags) {
  skip(":");
  expect(TokenKind::BlockEnd);
  return block(end_tags);
}

Block Parser::tag_body_and_end(std::string_view end_tag) {
  Block body = tag_body({end_tag});
  next();
  return body;
}

std::unique_ptr<Statement> Parser::statement() {
  using Parse = std::unique_ptr<Statement> (Parser::*)();
  static constexpr std::array<std::pair<std::string_view, Parse>, 8> kTags = {{
      {"if", &Parser::if_statement},
      {"for", &Parser::for_statement},
      {"set", &Parser::set_statement},
      {"with", &Parser::with_statement},
      {"macro", &Parser::macro_statement},
      {"call", &Parser::call_statement},
      {"filter", &Parser::filter_statement},
      {"generation", &Parser::generation_statement},
  }};
  const Token& token = current();
  if (token.kind != TokenKind::Name) raise("line {}: tag name expected", token.line);
  if (token.text == "break" || token.text == "continue") {
    const Token control = next();
    return std::make_unique<LoopControlStatement>(
        control.line, control.text == "break" ? Flow::Break : Flow::Continue);
  }
  for (const auto& [name, parse] : kTags) {
    if (token.text == name) return (this->*parse)();
  }
  if (among(kRefusedTags, token.text)) {
    raise("line {}: the tag {} is not supported in chat templates", token.line,
          in_quotes(token.text));
  }
  raise("line {}: Encountered unknown tag {}.", token.line, in_quotes(token.text));
}

std::unique_ptr<Statement> Parser::if_statement() {
  auto node = std::make_unique<IfStatement>(current().line);
  while (true) {
    next();  // if, elif
    IfStatement::Branch branch;
    branch.condition = tuple(Inline::NoConditions);
    branch.body = tag_body({"elif", "else", "endif"});
    node->branches.push_back(std::move(branch));
    if (!current().names("elif")) break;
  }
  if (next().text == "else") node->otherwise = tag_body_and_end("endif");
  return node;
}

std::unique_ptr<Statement> Parser::for_statement() {
  auto node = std::make_unique<ForStatement>(next().line);
  node->target = target(Attributes::Refused);
  if (!skip_name("in")) unexpected("in");
  node->over = tuple(Inline::NoConditions, "recursive");
  if (skip_name("if")) node->condition = expression();
  node->recursive = skip_name("recursive");
  node->body = tag_body({"endfor", "else"});
  if (next().text == "else") node->otherwise = tag_body_and_end("endfor");
  return node;
}

std::unique_ptr<Statement> Parser::set_statement() {
  const int line = next().line;
  Target to = target(Attributes::Allowed);
  if (skip("=")) {
    auto node = std::make_unique<SetStatement>(line);
    node->target = std::move(to);
    node->value = tuple(Inline::Conditions);
    return node;
  }
  auto node = std::make_unique<CaptureStatement>(line);
  node->target = std::move(to);
  if (skip("|")) node->filters = filters();
  node->body = tag_body_and_end("endset");
  return node;
}

std::unique_ptr<Statement> Parser::with_statement() {
  auto node = std::make_unique<WithStatement>(next().line);
  while (current().kind != TokenKind::BlockEnd) {
    if (!node->bindings.empty()) expect(",");
    Target to = target(Attributes::Refused);
    expect("=");
    node->bindings.emplace_back(std::move(to), expression());
  }
  node->body = tag_body_and_end("endwith");
  return node;
}

std::unique_ptr<Statement> Parser::macro_statement() {
  auto node = std::make_unique<MacroStatement>(next().line);
  node->macro.name = expect_name();
  node->target.name = node->macro.name;
  signature(node->macro);
  node->macro.body = tag_body_and_end("endmacro");
  return node;
}

std::unique_ptr<Statement> Parser::call_statement() {
  auto node = std::make_unique<CallStatement>(next().line);
  if (current().is("(")) signature(node->body);
  ExpressionPtr what = expression();
  auto* call = dynamic_cast<CallExpression*>(what.get());
  if (call == nullptr) raise("line {}: expected call", node->line);
  std::ignore = what.release();
  node->call.reset(call);
  node->body.body = tag_body_and_end("endcall");
  return node;
}

std::unique_ptr<Statement> Parser::filter_statement() {
  auto node = std::make_unique<CaptureStatement>(next().line);
  node->filters = filters();
  node->body = tag_body_and_end("endfilter");
  return node;
}

std::unique_ptr<Statement> Parser::generation_statement() {
  auto node = std::make_unique<CallStatement>(next().line);
  node->body.body = tag_body_and_end("endgeneration");
  return node;
}

void Parser::print_statement(Block& into) {
  const int line = next().line;
  bool first = true;
  while (current().kind != TokenKind::BlockEnd) {
    if (!first) expect(",");
    into.push_back(std::make_unique<OutputStatement>(line, expression()));
    first = false;
  }
}

void Parser::signature(Macro& macro) {
  expect("(");
  while (!current().is(")")) {
    if (!macro.parameters.empty()) expect(",");
    const int line = current().line;
    Macro::Parameter parameter;
    parameter.name = expect_name();
    const auto known = std::ranges::find(macro.parameters, parameter.name, &Macro::Parameter::name);
    if (known != macro.parameters.end()) {
      raise("line {}: the parameter {} stands there twice", line, in_quotes(parameter.name));
    }
    if (skip("=")) {
      parameter.fallback = expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
      raise("line {}: non-default argument follows default argument", line);
    }
    macro.parameters.push_back(std::move(parameter));
  }
  expect(")");
}

Target Parser::single_target(Attributes attributes) {
  const Nested nested(*this);
  if (skip("(")) {
    Target inner = target(Attributes::Refused);
    expect(")");
    return inner;
  }
  if (current().kind != TokenKind::Name) {
    raise("line {}: can't assign to {}", current().line, in_quotes(current().description()));
  }
  Target node;
  const int line = current().line;
  node.name = next().text;
  static constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                                 "True", "False", "None"};
  if (among(kConstants, node.name)) raise("line {}: can't assign to 'const'", line);
  if (attributes == Attributes::Allowed && skip(".")) {
    node.form = Target::Form::Attribute;
    node.attribute = expect_name();
  }
  return node;
}

Target Parser::target(Attributes attributes) {
  Target first = single_target(attributes);
  if (!current().is(",")) return first;
  Target node;
  node.form = Target::Form::Tuple;
  node.parts.push_back(std::move(first));
  while (skip(",")) {
    const Token& token = current();
    if (token.names("in") || token.is("=") || token.is(")") || token.kind == TokenKind::BlockEnd) {
      break;
    }
    node.parts.push_back(single_target(attributes));
  }
  return node;
}

std::vector<std::unique_ptr<FilterExpression>> Parser::filters() {
  std::vector<std::unique_ptr<FilterExpression>> chain;
  do {
    chain.push_back(filter(nullptr));
  } while (skip("|"));
  return chain;
}

std::unique_ptr<FilterExpression> Parser::filter(ExpressionPtr operand) {
  const int line = current().line;
  std::string name = expect_name();
  while (skip(".")) name += "." + expect_name();
  CallArguments arguments;
  if (current().is("(")) arguments = call_arguments();
  return bounded(std::make_unique<FilterExpression>(line, std::move(operand), std::move(name),
                                                    std::move(arguments)));
}

Token Parser::next() {
  Token token = current();
  if (token.kind != TokenKind::End) ++at_;
  return token;
}

bool Parser::skip(std::string_view op) {
  if (!current().is(op)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().names(name)) return false;
  next();
  return true;
}

void Parser::expect(std::string_view op) {
  if (!skip(op)) unexpected(op);
}

void Parser::expect(TokenKind kind) {
  if (current().kind != kind)
    unexpected(Token{.kind = kind, .text = {}, .number = {}}.description());
  next();
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::Name) unexpected("name");
  return next().text;
}

void Parser::unexpected(std::string_view wanted) const {
  if (current().kind == TokenKind::End) {
    raise("line {}: unexpected end of template, expected {}.", current().line, in_quotes(wanted));
  }
  raise("line {}: expected token {}, got {}", current().line, in_quotes(wanted),
        in_quotes(current().description()));
}

bool Parser::at_tuple_end(std::string_view end_name) const {
  const Token& token = current();
  return token.kind == TokenKind::VariableEnd || token.kind == TokenKind::BlockEnd ||
         token.is(")") || (!end_name.empty() && token.names(end_name));
}

}  // namespace baton::jinja
