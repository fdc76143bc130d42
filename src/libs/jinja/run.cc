// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/run.h"

#include "libs/jinja/builtins.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/printing.h"

#include <algorithm>
#include <utility>

namespace baton::jinja {
namespace {

// Between two looks at the limits and at the request to stop.
constexpr std::size_t kCheckEvery = 4096;
// Making so many bytes counts as one step.
constexpr std::size_t kBytesPerStep = 64;
// All values that a rendering makes on its way may be so many times larger than its output.
constexpr std::size_t kIntermediateFactor = 8;
// Stack that recursion may use, whatever the limit on calls.
constexpr std::size_t kStackBytes = 2UZ << 20;

const Value kUnset;

}  // namespace

Run::Run(const Dict& variables, const RenderContext& context)
    : variables_(variables),
      limits_(context.limits),
      now_(context.now),
      stop_(context.stop),
      stack_base_(static_cast<const char*>(__builtin_frame_address(0))) {
  whole_.reserve(std::min(context.expected_bytes, limits_.output_bytes));
}

Run::~Run() {
  for (const auto& kept : kept_) kept->slots.clear();
  for (const auto& held : namespaces_) held->attributes = Dict();
}

const Value& Run::resolve(std::string_view name) const {
  if (const Value* given = variables_.find(name)) return *given;
  if (const Value* global = find_global(name)) return *global;
  return kUnset;
}

void Run::check() {
  if (steps_ > limits_.steps) {
    throw Failure{.message = fmt::format("the template takes more than {} steps", limits_.steps),
                  .limit = true};
  }
  if (stop_.stop_requested()) {
    throw Failure{.message = "Rendering was stopped.", .stopped = true};
  }
  next_check_ = std::min(steps_ + kCheckEvery, limits_.steps + 1);
}

void Run::charge(std::size_t bytes) {
  produced_bytes_ += bytes;
  if (produced_bytes_ / kIntermediateFactor > limits_.output_bytes) too_long();
  step(bytes / kBytesPerStep);
}

void Run::too_long() const {
  throw Failure{
      .message = fmt::format("the template makes more than {} bytes", limits_.output_bytes),
      .limit = true};
}

void Run::print(const Value& value) {
  if (value.is_string()) {
    write(value.as_string());
  } else if (!value.is_undefined()) {
    append_str(*out_, value);
    write({});
  }
}

Value Run::text(std::string text) {
  charge(text.size() + sizeof(Text));
  return Value(std::move(text));
}

const Value& Run::bounded(const Value& value) const {
  if (value.nesting() > kMaxNesting) raise("values are nested deeper than {}", kMaxNesting);
  return value;
}

Value Run::list(List items) {
  charge(sizeof(ListObject) + items.size() * sizeof(Value));
  return bounded(Value(std::move(items)));
}

Value Run::tuple(List items) {
  charge(sizeof(ListObject) + items.size() * sizeof(Value));
  return bounded(Value::tuple(std::move(items)));
}

Value Run::iterator(List items) {
  charge(items.size() * sizeof(Value));
  return bounded(Value(Kind::Iterator, make<IteratorObject>(std::move(items))));
}

Value Run::dict(Dict entries) {
  charge(sizeof(DictObject) + entries.size() * sizeof(Dict::Entry));
  return bounded(Value(std::move(entries)));
}

Value Run::make_namespace(Dict attributes) {
  charge(sizeof(NamespaceObject) + attributes.size() * sizeof(Dict::Entry));
  auto object = make<NamespaceObject>();
  object->attributes = std::move(attributes);
  namespaces_.push_back(object);
  return Value(Kind::Namespace, std::move(object));
}

Ref<Activation> Run::keep_activation() {
  if (kept_.empty() || kept_.back().get() != activation_.get()) kept_.push_back(activation_);
  return activation_;
}

Run::Call::Call(Run& run, std::size_t slots, Ref<Activation> outer)
    : run_(run), caller_(run.activation_) {
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  const auto used = static_cast<std::size_t>(std::max<std::ptrdiff_t>(run.stack_base_ - here, 0));
  if (run.depth_ >= run.limits_.depth || used > kStackBytes) {
    raise("the template calls itself more than {} times deep", run.depth_);
  }
  run.charge(slots * sizeof(Value));
  run.step();
  run.activation_ = make<Activation>(slots, std::move(outer));
  ++run.depth_;
}

Run::Call::~Call() {
  --run_.depth_;
  run_.activation_ = std::move(caller_);
}

}  // namespace baton::jinja
