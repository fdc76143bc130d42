// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/workload.h"

#include "tools/loadgen/draw.h"
#include "tools/loadgen/trace.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace baton::loadgen {
namespace {

using Speaker = Piece::Speaker;

// Keys of pieces: what they are of, so that no two kinds share a key by chance.
enum class Use : std::uint64_t { Lengths = 1, Prompt, Prefix, Document, Block, Tail };

class MadeUp : public Workload {
 public:
  explicit MadeUp(const WorkloadOptions& options) : options_(options) {}

 protected:
  std::uint64_t key(Use use, std::uint64_t a, std::uint64_t b = 0) const {
    return mixed({options_.seed, static_cast<std::uint64_t>(use), a, b});
  }
  Draw draw(std::uint64_t number) const { return Draw(key(Use::Lengths, number)); }
  std::uint32_t varied(Draw& draw, std::uint32_t tokens) const {
    if (options_.spread == 0) return tokens;
    const double share = 1 + options_.spread * (2 * draw.unit() - 1);
    return std::max(1U, static_cast<std::uint32_t>(static_cast<double>(tokens) * share + 0.5));
  }
  Piece own(std::uint64_t number, std::uint32_t tokens, std::uint64_t turn = 0) const {
    return {.speaker = Speaker::User, .key = key(Use::Prompt, number, turn), .tokens = tokens};
  }
  std::vector<Piece> system_prompt(std::uint64_t group) const {
    if (options_.prefix_tokens == 0) return {};
    return {{.speaker = Speaker::System,
             .key = key(Use::Prefix, group),
             .tokens = options_.prefix_tokens}};
  }
  const WorkloadOptions options_;
};

class Distinct final : public MadeUp {
 public:
  using MadeUp::MadeUp;
  Conversation conversation(std::uint64_t number) const override {
    Draw drawn = draw(number);
    return {number,
            {{.says = {own(number, varied(drawn, options_.input_tokens))},
              .output_tokens = varied(drawn, options_.output_tokens)}}};
  }
};

class SharedPrefix final : public MadeUp {
 public:
  using MadeUp::MadeUp;
  Conversation conversation(std::uint64_t number) const override {
    Draw drawn = draw(number);
    const std::uint64_t group = drawn.below(options_.groups);
    Turn turn{.says = system_prompt(group)};
    turn.says.push_back(own(number, varied(drawn, options_.input_tokens)));
    turn.output_tokens = varied(drawn, options_.output_tokens);
    return {number, {std::move(turn)}};
  }
};

class MultiTurn final : public MadeUp {
 public:
  using MadeUp::MadeUp;
  Conversation conversation(std::uint64_t number) const override {
    Draw drawn = draw(number);
    Conversation talk{number, {}};
    for (std::uint32_t turn = 0; turn < options_.turns; ++turn) {
      Turn next;
      if (turn == 0) {
        next.says = system_prompt(0);
      } else {
        // Between half and one and a half times as long as said.
        const double time = static_cast<double>(options_.think_time.count()) * (0.5 + drawn.unit());
        next.think = std::chrono::microseconds(static_cast<std::int64_t>(time * 1000));
      }
      next.says.push_back(own(number, varied(drawn, options_.input_tokens), turn));
      next.output_tokens = varied(drawn, options_.output_tokens);
      talk.turns.push_back(std::move(next));
    }
    return talk;
  }
};

class HotDocument final : public MadeUp {
 public:
  using MadeUp::MadeUp;
  Conversation conversation(std::uint64_t number) const override {
    Draw drawn = draw(number);
    Turn turn;
    if (drawn.chance(options_.hot_share)) {
      turn.says.push_back({.speaker = Speaker::System,
                           .key = key(Use::Document, 0),
                           .tokens = options_.document_tokens});
      turn.says.push_back(own(number, varied(drawn, options_.input_tokens)));
    } else {
      turn.says.push_back(own(number, varied(drawn, options_.other_tokens)));
    }
    turn.output_tokens = varied(drawn, options_.output_tokens);
    return {number, {std::move(turn)}};
  }
};

class LongShort final : public MadeUp {
 public:
  using MadeUp::MadeUp;
  Conversation conversation(std::uint64_t number) const override {
    Draw drawn = draw(number);
    const bool is_long = drawn.chance(options_.long_share);
    const std::uint32_t tokens = is_long ? options_.long_tokens : options_.short_tokens;
    return {number,
            {{.says = {own(number, varied(drawn, tokens))},
              .output_tokens = varied(drawn, options_.output_tokens)}}};
  }
};

class Replay final : public MadeUp {
 public:
  Replay(const WorkloadOptions& options, std::vector<TraceRequest> trace)
      : MadeUp(options), trace_(std::move(trace)) {}

  std::optional<std::uint64_t> size() const override { return trace_.size(); }
  std::optional<std::chrono::microseconds> begins(std::uint64_t number) const override {
    constexpr double kLatest = 1e15;  // some thirty years: enough, and it fits
    const double scaled = std::min(trace_[number].at_ms * 1000 / options_.time_scale, kLatest);
    return std::chrono::microseconds(static_cast<std::int64_t>(scaled));
  }
  Conversation conversation(std::uint64_t number) const override {
    const TraceRequest& request = trace_[number];
    Turn turn{.says = {}, .output_tokens = request.output_length};
    std::uint32_t left = request.input_length;
    for (const std::uint64_t id : request.hash_ids) {
      const std::uint32_t tokens = std::min(left, options_.trace_block);
      turn.says.push_back({.speaker = Speaker::User, .key = key(Use::Block, id), .tokens = tokens});
      left -= tokens;
    }
    // Tokens past the last id are unique to this request.
    if (left > 0)
      turn.says.push_back(
          {.speaker = Speaker::User, .key = key(Use::Tail, number), .tokens = left});
    return {number, {std::move(turn)}};
  }

 private:
  const std::vector<TraceRequest> trace_;
};

}  // namespace

Result<std::unique_ptr<const Workload>> make_workload(const Plan& plan) {
  const WorkloadOptions& options = plan.options.workload;
  switch (options.kind) {
    case WorkloadKind::Distinct:
      return std::make_unique<Distinct>(options);
    case WorkloadKind::SharedPrefix:
      return std::make_unique<SharedPrefix>(options);
    case WorkloadKind::MultiTurn:
      return std::make_unique<MultiTurn>(options);
    case WorkloadKind::HotDocument:
      return std::make_unique<HotDocument>(options);
    case WorkloadKind::LongShort:
      return std::make_unique<LongShort>(options);
    case WorkloadKind::Trace:
      break;
  }
  if (options.trace_file.empty()) {
    return std::make_unique<Replay>(
        options, make_trace(plan.requests.value_or(kDefaultRequests), options.seed));
  }
  auto trace = read_trace(options.trace_file, options.trace_block);
  if (!trace) return fail(trace.error());
  return std::make_unique<Replay>(options, *std::move(trace));
}

}  // namespace baton::loadgen
