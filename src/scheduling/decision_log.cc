// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/decision_log.h"

#include <algorithm>
#include <utility>

namespace baton::scheduling {
namespace {

// A request that is retried and migrated for hours does not fill the log with itself.
constexpr std::size_t kMostChoices = 32;

}  // namespace

DecisionLog::Page DecisionLog::open(std::string request_id, std::string model,
                                    std::uint64_t prompt_tokens) {
  if (most_ == 0) return {};
  auto decided = std::make_shared<Decided>();
  decided->request_id = std::move(request_id);
  decided->model = std::move(model);
  decided->begun = std::chrono::system_clock::now();
  decided->prompt_tokens = prompt_tokens;
  std::shared_ptr<Decided> oldest;  // its end is outside the lock
  const locks::Lock lock(mutex_);
  by_id_.insert_or_assign(decided->request_id, decided);
  ring_.push_back(decided);
  if (ring_.size() > most_) {
    oldest = std::move(ring_.front());
    ring_.pop_front();
    if (const auto found = by_id_.find(oldest->request_id);
        found != by_id_.end() && found->second == oldest) {
      by_id_.erase(found);
    }
  }
  return Page(*this, std::move(decided));
}

std::optional<Decided> DecisionLog::find(std::string_view request_id) const {
  const locks::Lock lock(mutex_);
  const auto found = by_id_.find(std::string(request_id));
  if (found == by_id_.end()) return std::nullopt;
  return *found->second;
}

std::vector<std::string> DecisionLog::recent(std::size_t most) const {
  std::vector<std::string> ids;
  const locks::Lock lock(mutex_);
  for (auto decided = ring_.rbegin(); decided != ring_.rend() && ids.size() < most; ++decided)
    ids.push_back((*decided)->request_id);
  return ids;
}

std::size_t DecisionLog::size() const {
  const locks::Lock lock(mutex_);
  return ring_.size();
}

void DecisionLog::Page::bypass(std::string_view label) {
  if (!decided_) return;
  const locks::Lock lock(log_->mutex_);
  decided().bypass = label;
}

void DecisionLog::Page::waited(Waited waited) {
  if (!decided_) return;
  const locks::Lock lock(log_->mutex_);
  decided().waited = std::move(waited);
}

void DecisionLog::Page::chosen(Decision decision) {
  if (!decided_) return;
  const locks::Lock lock(log_->mutex_);
  auto& decisions = decided().decisions;
  // At the limit a new decision replaces the last one, if that was given back: the end matters.
  if (decisions.size() == kMostChoices && !decisions.back().given_back.empty())
    decisions.pop_back();
  written_ = decisions.size() < kMostChoices;
  if (written_) decisions.push_back(std::move(decision));
}

void DecisionLog::Page::given_back(std::string_view why) {
  if (!decided_ || !written_) return;
  const locks::Lock lock(log_->mutex_);
  decided().decisions.back().given_back = why;
}

void DecisionLog::Page::close(Outcome outcome) {
  if (!decided_) return;
  const locks::Lock lock(log_->mutex_);
  decided().outcome = std::move(outcome);
}

}  // namespace baton::scheduling
