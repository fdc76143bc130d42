// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/tally.h"

#include <algorithm>

namespace baton::loadgen {
namespace {

using std::chrono::nanoseconds;

bool within(std::optional<nanoseconds> time, std::optional<double> limit_ms) {
  if (!limit_ms || !time) return true;
  return std::chrono::duration<double, std::milli>(*time).count() <= *limit_ms;
}

// Names come from the endpoint: when there are too many, the rest share one.
template <class Map, class Key>
auto& bounded(Map& map, Key key, Key rest) {
  if (map.size() >= Tally::kMostNames && !map.contains(key)) return map[rest];
  return map[key];
}

}  // namespace

std::optional<nanoseconds> RequestRecord::ttft() const {
  if (!first_token) return std::nullopt;
  return *first_token - sent;
}

std::optional<nanoseconds> RequestRecord::mean_gap() const {
  if (!first_token || events < 2) return std::nullopt;
  return (last_token - *first_token) / static_cast<std::int64_t>(events - 1);
}

bool Target::met_by(const RequestRecord& request) const {
  if (request.ending != Ending::Completed) return false;
  return within(request.ttft(), ttft_ms) && within(request.mean_gap(), itl_ms);
}

void Tally::sent(nanoseconds at, nanoseconds late, bool measured) {
  ++all_sent;
  ++series.at(at).sent;
  if (!measured) return;
  lateness.add(late);
  if (!first_sent || at < *first_sent) first_sent = at;
}

void Tally::first_token(nanoseconds at, nanoseconds time, bool measured) {
  Moment& moment = series.at(at);
  ++moment.output_tokens;
  moment.ttft.add(time);
  if (measured) ttft.add(time);
}

void Tally::next_token(nanoseconds at, nanoseconds gap, bool measured) {
  Moment& moment = series.at(at);
  ++moment.output_tokens;
  moment.itl.add(gap);
  if (measured) itl.add(gap);
}

void Tally::ended(const RequestRecord& request) {
  ++all_ended;
  Moment& moment = series.at(request.ended);
  if (request.ending == Ending::Completed) {
    ++moment.completed;
    if (request.cached_tokens) {
      moment.prompt_tokens += request.prompt_tokens;
      moment.cached_tokens += *request.cached_tokens;
    }
  }
  if (request.ending == Ending::Refused) ++moment.refused;
  if (request.ending == Ending::Failed) ++moment.failed;
  if (!request.measured) {
    ++warmup;
    return;
  }
  if (request.ending == Ending::Cut) {
    ++cut;
    return;
  }
  last_end = std::max(last_end, request.ended);
  sample(request);
  if (request.ending != Ending::Completed) {
    ++bounded(errors, request.error, std::string("others"));
    if (request.ending == Ending::Failed) {
      ++failed;
      return;
    }
    ++refused;
    if (request.retry_after) ++refused_with_retry_after;
    refusal.add(request.ended - request.sent);
    return;
  }
  ++completed;
  total.add(request.ended - request.sent);
  prompt_tokens += request.prompt_tokens;
  output_tokens += request.output_tokens;
  if (request.cached_tokens) {
    ++with_cached;
    cached_tokens += *request.cached_tokens;
    cacheable_tokens += request.prompt_tokens;
  }
  if (target_.met_by(request)) ++good;
  count_workers(request);
}

void Tally::count_workers(const RequestRecord& request) {
  const auto load_of = [this](const char* role, const std::string& name) -> WorkerLoad& {
    return bounded(workers, std::pair<std::string, std::string>(role, name),
                   std::pair<std::string, std::string>(role, "others"));
  };
  const auto add_prompt = [&request](WorkerLoad& load) {
    load.prompt_tokens += request.prompt_tokens;
    load.cached_tokens += request.cached_tokens.value_or(0);
  };
  if (!request.prefill_worker.empty()) {
    WorkerLoad& load = load_of("prefill", request.prefill_worker);
    ++load.requests;
    add_prompt(load);
  }
  if (request.decode_worker.empty()) return;
  WorkerLoad& load = load_of("decode", request.decode_worker);
  ++load.requests;
  load.output_tokens += request.output_tokens;
  // Without a prefill worker it did both.
  if (request.prefill_worker.empty()) add_prompt(load);
}

void Tally::sample(const RequestRecord& request) {
  ++sampled_of_;
  if (samples_.size() < most_samples_) {
    samples_.push_back(request);
  } else if (const std::uint64_t place = draw_.below(sampled_of_); place < most_samples_) {
    samples_[place] = request;
  }
}

void Tally::merge(const Tally& other) {
  for (const auto member :
       {&Tally::completed, &Tally::refused, &Tally::refused_with_retry_after, &Tally::failed,
        &Tally::cut, &Tally::good, &Tally::prompt_tokens, &Tally::output_tokens,
        &Tally::with_cached, &Tally::cached_tokens, &Tally::cacheable_tokens, &Tally::all_sent,
        &Tally::all_ended, &Tally::warmup, &Tally::skipped}) {
    this->*member += other.*member;
  }
  for (const auto member :
       {&Tally::ttft, &Tally::itl, &Tally::total, &Tally::refusal, &Tally::lateness}) {
    (this->*member).merge(other.*member);
  }
  for (const auto& [kind, count] : other.errors)
    bounded(errors, kind, std::string("others")) += count;
  for (const auto& [name, theirs] : other.workers) {
    WorkerLoad& ours =
        bounded(workers, name, std::pair<std::string, std::string>(name.first, "others"));
    ours.requests += theirs.requests;
    ours.prompt_tokens += theirs.prompt_tokens;
    ours.cached_tokens += theirs.cached_tokens;
    ours.output_tokens += theirs.output_tokens;
  }
  if (other.first_sent)
    first_sent = first_sent ? std::min(*first_sent, *other.first_sent) : *other.first_sent;
  last_end = std::max(last_end, other.last_end);
  series.merge(other.series);
  merge_samples(other);
}

// From each as often as it has seen requests.
void Tally::merge_samples(const Tally& other) {
  std::vector<RequestRecord> ours = std::move(samples_);
  std::vector<RequestRecord> theirs = other.samples_;
  std::uint64_t ours_stand_for = sampled_of_;
  std::uint64_t theirs_stand_for = other.sampled_of_;
  sampled_of_ += other.sampled_of_;
  samples_.clear();
  while (samples_.size() < most_samples_ && !(ours.empty() && theirs.empty())) {
    const bool from_ours =
        theirs.empty() ||
        (!ours.empty() && draw_.below(ours_stand_for + theirs_stand_for) < ours_stand_for);
    auto& from = from_ours ? ours : theirs;
    --(from_ours ? ours_stand_for : theirs_stand_for);
    std::swap(from[draw_.below(from.size())], from.back());
    samples_.push_back(std::move(from.back()));
    from.pop_back();
  }
}

}  // namespace baton::loadgen
