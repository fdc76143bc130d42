// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/operators.h"
#include "libs/jinja/run.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::jinja {

class Binder;
struct Builtin;
struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
// Each name in a part of the template, in order, and whether it is read or assigned.
enum class NameUse : std::uint8_t { Read, Assigned };
using OnName = std::function<void(const std::string& name, NameUse use)>;

// Role. A node of an expression.
// Confinement. Immutable once bound; any thread.
struct Expression {
  explicit Expression(int at_line) : line(at_line) {}
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  virtual ~Expression() = default;

  // The value: either `scratch`, or something that stays as it is until the statement ends. So a
  // variable is read without touching the count of its payload.
  virtual const Value& evaluate(Run& run, Value& scratch) const = 0;
  // Writes str() of the value to the output.
  virtual void print(Run& run) const;
  bool test(Run& run) const;
  Value value(Run& run) const;

  virtual void each_child(const std::function<void(Expression&)>& visit) const { (void)visit; }
  virtual void each_name(const OnName& visit) const;
  // Resolves names to slots. `soft` where a filter that is not known is an error only once it is
  // reached: inside of `if`.
  virtual void bind(Binder& binder, bool soft);

  const int line;
  int depth = 1;  // of the tree below; bounded, because evaluation recurses
};

struct Constant final : Expression {
  Constant(int at_line, Value constant) : Expression(at_line), held(std::move(constant)) {}
  const Value& evaluate(Run&, Value&) const override { return held; }
  const Value held;
};

struct NameExpression final : Expression {
  NameExpression(int at_line, std::string what)
      : Expression(at_line), name(std::move(what)), text(make<Text>(name)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_name(const OnName& visit) const override { visit(name, NameUse::Read); }
  void bind(Binder& binder, bool soft) override;
  const std::string name;
  const Ref<Text> text;
  SlotRef slot;
};

struct SequenceExpression final : Expression {
  enum class Form : std::uint8_t { List, Tuple };
  SequenceExpression(int at_line, Form which, std::vector<ExpressionPtr> parts)
      : Expression(at_line), form(which), items(std::move(parts)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  const Form form;
  std::vector<ExpressionPtr> items;
};

struct DictExpression final : Expression {
  using Pair = std::pair<ExpressionPtr, ExpressionPtr>;
  DictExpression(int at_line, std::vector<Pair> pairs)
      : Expression(at_line), entries(std::move(pairs)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  std::vector<Pair> entries;
};

struct UnaryExpression final : Expression {
  enum class Operation : std::uint8_t { Not, Negative, Positive };
  UnaryExpression(int at_line, Operation what, ExpressionPtr of)
      : Expression(at_line), operation(what), operand(std::move(of)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override { visit(*operand); }
  const Operation operation;
  ExpressionPtr operand;
};

struct ArithmeticExpression final : Expression {
  ArithmeticExpression(int at_line, Arithmetic what, ExpressionPtr a, ExpressionPtr b)
      : Expression(at_line), operation(what), left(std::move(a)), right(std::move(b)) {
    const auto* inner = dynamic_cast<const ArithmeticExpression*>(left.get());
    chained = inner != nullptr && inner->operation == Arithmetic::Add;
  }
  const Value& evaluate(Run& run, Value& scratch) const override;
  void print(Run& run) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  const Arithmetic operation;
  ExpressionPtr left;
  ExpressionPtr right;
  bool chained = false;  // the left side is a sum too

 private:
  bool print_text(Run& run, Value& sum) const;
};

struct LogicExpression final : Expression {
  enum class Operation : std::uint8_t { And, Or };
  LogicExpression(int at_line, Operation what, ExpressionPtr a, ExpressionPtr b)
      : Expression(at_line), operation(what), left(std::move(a)), right(std::move(b)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  const Operation operation;
  ExpressionPtr left;
  ExpressionPtr right;
};

struct ConcatExpression final : Expression {  // a ~ b ~ c
  ConcatExpression(int at_line, std::vector<ExpressionPtr> pieces)
      : Expression(at_line), parts(std::move(pieces)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void print(Run& run) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  std::vector<ExpressionPtr> parts;
};

struct CompareExpression final : Expression {
  enum class Membership : std::uint8_t { No, In, NotIn };
  struct Step {
    Comparison comparison = Comparison::Equal;
    Membership membership = Membership::No;
    ExpressionPtr operand;
  };
  CompareExpression(int at_line, ExpressionPtr start, std::vector<Step> chain)
      : Expression(at_line), first(std::move(start)), steps(std::move(chain)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  ExpressionPtr first;
  std::vector<Step> steps;
};

struct ConditionalExpression final : Expression {  // a if test else b
  ConditionalExpression(int at_line, ExpressionPtr condition, ExpressionPtr yes, ExpressionPtr no)
      : Expression(at_line),
        test_(std::move(condition)),
        then(std::move(yes)),
        otherwise(std::move(no)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void print(Run& run) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  void bind(Binder& binder, bool soft) override;
  ExpressionPtr test_;
  ExpressionPtr then;
  ExpressionPtr otherwise;  // may be null
};

struct AttributeExpression final : Expression {  // a.b
  AttributeExpression(int at_line, ExpressionPtr of, std::string attribute);
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override { visit(*object); }
  ExpressionPtr object;
  const Value name;
  const Builtin* const text_method;  // what the name means of a string, a list, a dict
  const Builtin* const list_method;
  const Builtin* const dict_method;
  const bool only_item_of_dict;  // a dict has no attribute of this name
};

struct ItemExpression final : Expression {  // a[b]
  ItemExpression(int at_line, ExpressionPtr of, ExpressionPtr what)
      : Expression(at_line), object(std::move(of)), key(std::move(what)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  ExpressionPtr object;
  ExpressionPtr key;
};

struct SliceExpression final : Expression {  // a[b:c:d], each of which may be null
  SliceExpression(int at_line, ExpressionPtr from, ExpressionPtr to, ExpressionPtr by)
      : Expression(at_line), start(std::move(from)), stop(std::move(to)), step(std::move(by)) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  ExpressionPtr object;  // set once the brackets are closed
  ExpressionPtr start;
  ExpressionPtr stop;
  ExpressionPtr step;
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<Ref<Text>, ExpressionPtr>> named;
  ExpressionPtr spread;        // *args
  ExpressionPtr spread_named;  // **kwargs
  void evaluate(Run& run, Arguments& into) const;
  void each_child(const std::function<void(Expression&)>& visit) const;
};

struct CallExpression final : Expression {
  CallExpression(int at_line, ExpressionPtr what, CallArguments with)
      : Expression(at_line),
        callee(std::move(what)),
        arguments(std::move(with)),
        attribute(dynamic_cast<const AttributeExpression*>(callee.get())) {}
  const Value& evaluate(Run& run, Value& scratch) const override;
  Value call(Run& run, const Value* caller) const;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  ExpressionPtr callee;
  CallArguments arguments;
  const AttributeExpression* const attribute;  // the callee, where it is one
};

struct FilterExpression final : Expression {
  FilterExpression(int at_line, ExpressionPtr what, std::string called, CallArguments with);
  const Value& evaluate(Run& run, Value& scratch) const override;
  Value apply(Run& run, const Value& to) const;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  void bind(Binder& binder, bool soft) override;
  ExpressionPtr operand;  // null where a block's output is filtered
  const std::string name;
  const Builtin* const filter;  // null where it is not known
  CallArguments arguments;
};

struct TestExpression final : Expression {
  TestExpression(int at_line, ExpressionPtr what, std::string called, CallArguments with);
  const Value& evaluate(Run& run, Value& scratch) const override;
  void each_child(const std::function<void(Expression&)>& visit) const override;
  void bind(Binder& binder, bool soft) override;
  ExpressionPtr operand;
  const std::string name;
  const Builtin* const builtin;
  CallArguments arguments;
};

}  // namespace baton::jinja
