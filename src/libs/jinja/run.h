// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/objects.h"
#include "libs/jinja/template.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::jinja {

// The variables of one call of a function of the template: the whole template, a macro, the body of
// a call block or of a recursive loop. Macros keep the one they were made in.
struct Activation final : Object {
  Activation(std::size_t size, Ref<Activation> around) : slots(size), outer(std::move(around)) {}
  std::vector<Value> slots;
  const Ref<Activation> outer;
};

// Place of a variable: `hops` functions further out, at `index`.
struct SlotRef {
  std::uint16_t hops = 0;
  std::uint16_t index = 0;
};

// Role. One rendering: its variables, its output, and what it has cost so far.
// Confinement. The thread that renders.
// Lifetime. The template and the variables outlive it. Nothing of it outlives it: what could hold
//   itself (namespaces, the variables that macros keep) is emptied at the end.
class Run {
 public:
  Run(const Dict& variables, const RenderContext& context);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Value& slot(SlotRef at) {
    Activation* in = activation_.get();
    for (std::uint16_t i = 0; i < at.hops; ++i) in = in->outer.get();
    return in->slots[at.index];
  }
  // A variable that the caller gave, or a global function; unset where there is neither.
  const Value& resolve(std::string_view name) const;

  // Calls and the bodies of loops are counted; so are bytes, since they take time to make.
  void step(std::size_t count = 1) {
    steps_ += count;
    if (steps_ >= next_check_) check();
  }
  void charge(std::size_t bytes);

  void write(std::string_view text) {
    out_->append(text);
    if (out_->size() > limits_.output_bytes) too_long();
  }
  // str(value), as {{ }} prints it.
  void print(const Value& value);

  // New values are made here, so that what a template makes is bounded.
  Value text(std::string text);
  Value list(List items);
  Value tuple(List items);
  Value iterator(List items);
  Value dict(Dict entries);
  Value make_namespace(Dict attributes);
  const Value& bounded(const Value& value) const;

  std::chrono::system_clock::time_point now() const { return now_; }
  const Ref<Activation>& activation() const { return activation_; }
  // The current variables will outlive their call.
  Ref<Activation> keep_activation();
  std::string& output() { return *out_; }

  // While it lives, output goes into a text of its own.
  class Capture {
   public:
    explicit Capture(Run& run) : run_(run), outer_(run.out_) {
      text_.reserve(run.usual_capture_ + run.usual_capture_ / 8);  // few are of the same size
      run.out_ = &text_;
    }
    ~Capture() { run_.out_ = outer_; }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    Value take() {
      run_.usual_capture_ = std::min(text_.size(), kMostReserved);
      return run_.text(std::move(text_));
    }

   private:
    Run& run_;
    std::string* outer_;
    std::string text_;
  };

  // While it lives, a function of the template runs: with variables of its own, one call deeper.
  class Call {
   public:
    Call(Run& run, std::size_t slots, Ref<Activation> outer);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Run& run_;
    Ref<Activation> caller_;
  };

  // While it lives, the variables are those of another call that is still under way.
  class Visit {
   public:
    Visit(Run& run, Ref<Activation> to) : run_(run), outer_(std::move(to)) { swap(); }
    ~Visit() { swap(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    void swap() { std::swap(run_.activation_, outer_); }
    Run& run_;
    Ref<Activation> outer_;
  };

  std::string take_output() && { return std::move(whole_); }

 private:
  void check();
  [[noreturn]] void too_long() const;

  static constexpr std::size_t kMostReserved = 4096;

  const Dict& variables_;
  const Limits limits_;
  const std::chrono::system_clock::time_point now_;
  const std::stop_token stop_;
  const char* const stack_base_;
  Ref<Activation> activation_;
  std::string whole_;
  std::string* out_ = &whole_;
  std::size_t steps_ = 0;
  std::size_t next_check_ = 0;
  std::size_t produced_bytes_ = 0;
  std::size_t usual_capture_ = 0;  // what the last one had
  std::size_t depth_ = 0;
  std::vector<Ref<Activation>> kept_;
  std::vector<Ref<NamespaceObject>> namespaces_;
};

}  // namespace baton::jinja
