// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/lexer.h"
#include "libs/jinja/statements.h"

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::jinja {

// Role. Makes a tree of a template's tokens, by jinja2's grammar. Raises a Failure that names the
//   line.
// Confinement. One parse.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Block parse();

 private:
  enum class Inline : std::uint8_t { Conditions, NoConditions };
  using EndTags = std::initializer_list<std::string_view>;

  // Statements (parser_statements.cc).
  Block block(EndTags end_tags);
  Block tag_body(EndTags end_tags);  // from behind the opening tag to the end tag, which stays
  Block tag_body_and_end(std::string_view end_tag);
  std::unique_ptr<Statement> statement();
  std::unique_ptr<Statement> if_statement();
  std::unique_ptr<Statement> for_statement();
  std::unique_ptr<Statement> set_statement();
  std::unique_ptr<Statement> with_statement();
  std::unique_ptr<Statement> macro_statement();
  std::unique_ptr<Statement> call_statement();
  std::unique_ptr<Statement> filter_statement();
  std::unique_ptr<Statement> generation_statement();
  void print_statement(Block& into);
  void signature(Macro& macro);
  enum class Attributes : std::uint8_t { Allowed, Refused };
  Target target(Attributes attributes);
  Target single_target(Attributes attributes);
  std::vector<std::unique_ptr<FilterExpression>> filters();
  std::unique_ptr<FilterExpression> filter(ExpressionPtr operand);

  // Operators (parser_expressions.cc) and what they work on (parser_operands.cc).
  ExpressionPtr expression(Inline conditions = Inline::Conditions);
  ExpressionPtr tuple(Inline conditions, std::string_view end_name = {},
                      bool in_parentheses = false);
  ExpressionPtr conditional();
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filtered(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr subscribed();
  ExpressionPtr tested(ExpressionPtr node);
  CallArguments call_arguments();
  ExpressionPtr call(ExpressionPtr node);

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next();
  bool skip(std::string_view op);
  bool skip_name(std::string_view name);
  void expect(std::string_view op);
  void expect(TokenKind kind);
  std::string expect_name();
  [[noreturn]] void unexpected(std::string_view wanted) const;
  bool at_tuple_end(std::string_view end_name) const;

  // Bounds how deep the tree is, since evaluating it recurses.
  template <class Node>
  std::unique_ptr<Node> bounded(std::unique_ptr<Node> node) {
    check_depth(*node);
    return node;
  }
  void check_depth(Expression& node) const;
  class Nested {
   public:
    explicit Nested(Parser& parser);
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
};

}  // namespace baton::jinja
