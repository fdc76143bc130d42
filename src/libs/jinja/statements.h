// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/ast.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::jinja {

class Symbols;
struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

// How a statement ended.
enum class Flow : std::uint8_t { Next, Break, Continue };

// Role. A node of the template: text, or a tag with what it encloses.
// Confinement. Immutable once bound; any thread.
struct Statement {
  explicit Statement(int at_line) : line(at_line) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  virtual ~Statement() = default;

  virtual Flow run(Run& run) const = 0;
  virtual void each_name(const OnName& visit) const = 0;
  // Names that this statement reads or assigns in the scope around it (not in its own).
  virtual void declare(Symbols& symbols) const = 0;
  virtual void bind(Binder& binder, bool soft) = 0;

  const int line;
};

Flow run_block(const Block& block, Run& run);

// Loads of variables at the start of a scope.
struct ScopeEntry {
  enum class Action : std::uint8_t { Resolve, Copy, Unset };
  struct Load {
    Action action;
    std::uint16_t index;
    SlotRef source;    // of Copy
    std::string name;  // of Resolve
  };
  std::vector<Load> loads;
  void enter(Run& run) const;
};

// Target of an assignment: a name, names to unpack into, or an attribute of a namespace.
struct Target {
  enum class Form : std::uint8_t { Name, Tuple, Attribute };
  Form form = Form::Name;
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
  SlotRef slot;

  void assign(Run& run, Value value) const;
  void each_name(const OnName& visit) const;
  void declare(Symbols& symbols) const;
  void declare_as_parameter(Symbols& symbols) const;
  void bind(Binder& binder);
};

struct OutputStatement final : Statement {
  OutputStatement(int at_line, ExpressionPtr printed)
      : Statement(at_line), expression(std::move(printed)) {}
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  ExpressionPtr expression;
};

struct TextStatement final : Statement {
  TextStatement(int at_line, std::string what) : Statement(at_line), text(std::move(what)) {}
  Flow run(Run& run) const override;
  void each_name(const OnName&) const override {}
  void declare(Symbols&) const override {}
  void bind(Binder&, bool) override {}
  const std::string text;
};

struct IfStatement final : Statement {
  using Statement::Statement;
  struct Branch {
    ExpressionPtr condition;
    Block body;
  };
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  std::vector<Branch> branches;  // if, elif, …
  Block otherwise;
};

struct ForStatement final : Statement {
  using Statement::Statement;
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  // One round of a recursive loop over this.
  Value recurse(Run& run, const Value& over, std::int64_t depth0, Ref<Activation> outer) const;
  // Whether the item passes the loop's own `if`. Requires: the variables around the loop.
  bool accepts(Run& run, const Value& item) const;

  Target target;
  ExpressionPtr over;
  ExpressionPtr condition;  // may be null
  bool recursive = false;
  Block body;
  Block otherwise;

  // Known once bound.
  Target condition_target;
  ScopeEntry scope;
  ScopeEntry condition_scope;
  ScopeEntry otherwise_scope;
  std::optional<SlotRef> loop_slot;  // where something asks for `loop`
  std::size_t slots = 0;             // of a recursive loop's own variables

 private:
  // Whether some round came to the end of the body: if none did, jinja2 runs the `else`.
  bool walk_plainly(Run& run, const Value& values) const;
  bool walk_with_loop(Run& run, const Value& values, std::int64_t depth0) const;
};

struct SetStatement final : Statement {
  using Statement::Statement;
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  Target target;
  ExpressionPtr value;
};

// {% set x %} … {% endset %}; {% filter f %} … {% endfilter %} where there is no target.
struct CaptureStatement final : Statement {
  using Statement::Statement;
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  std::optional<Target> target;
  std::vector<std::unique_ptr<FilterExpression>> filters;  // in the order they apply
  Block body;
  ScopeEntry scope;
};

struct WithStatement final : Statement {
  using Statement::Statement;
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  Block body;
  ScopeEntry scope;
};

// The body of a macro or of a call block.
struct Macro {
  struct Parameter {
    std::string name;
    ExpressionPtr fallback;  // may be null
    SlotRef slot;
  };
  void each_name(const OnName& visit) const;
  void bind(Binder& binder, int line);
  Value call(Run& run, const Ref<Activation>& outer, Arguments& arguments) const;

  std::string name;  // empty for the body of a call block
  std::vector<Parameter> parameters;
  Block body;
  ScopeEntry scope;
  std::optional<SlotRef> caller;
  std::optional<SlotRef> named_rest;
  std::optional<SlotRef> positional_rest;
  bool explicit_caller = false;
  std::size_t slots = 0;

 private:
  std::string shown_name() const;
};

struct MacroStatement final : Statement {
  using Statement::Statement;
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  Macro macro;
  Target target;
};

// {% call f() %} … {% endcall %}; {% generation %}, which calls its own body, where there is no call.
struct CallStatement final : Statement {
  using Statement::Statement;
  Flow run(Run& run) const override;
  void each_name(const OnName& visit) const override;
  void declare(Symbols& symbols) const override;
  void bind(Binder& binder, bool soft) override;
  Macro body;
  std::unique_ptr<CallExpression> call;
};

struct LoopControlStatement final : Statement {
  LoopControlStatement(int at_line, Flow what) : Statement(at_line), flow(what) {}
  Flow run(Run&) const override { return flow; }
  void each_name(const OnName&) const override {}
  void declare(Symbols&) const override {}
  void bind(Binder& binder, bool soft) override;
  const Flow flow;
};

// A macro as a value: what it is, and the variables around it.
struct MacroObject final : FunctionObject {
  MacroObject(const Macro& of, Ref<Activation> around) : macro(of), outer(std::move(around)) {}
  Value call(Run& run, Arguments& arguments) const override {
    return macro.call(run, outer, arguments);
  }
  std::string_view type_name() const override { return "Macro"; }
  std::string repr() const override;
  const Macro& macro;
  const Ref<Activation> outer;
};

}  // namespace baton::jinja
