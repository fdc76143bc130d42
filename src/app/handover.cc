// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/handover.h"

#include <charconv>
#include <string>
#include <system_error>

namespace baton::app {
namespace {

std::optional<pid_t> read_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 1) return std::nullopt;
  return pid;
}

}  // namespace

Handover::Step Handover::asked(std::string_view objection) {
  if (under_way()) return {Act::Refuse, {}, "another restart is under way"};
  if (phase_ == Phase::Over) return {Act::Refuse, {}, "the process has handed over, or is to end"};
  if (!objection.empty()) return {Act::Refuse, {}, objection};
  phase_ = Phase::Saving;
  return {Act::Save};
}

Handover::Step Handover::saved(Clock::time_point now) {
  if (phase_ != Phase::Saving) return {};
  phase_ = Phase::Starting;
  deadline_ = now + timeout_;
  pid_.reset();
  checked_ = ready_ = false;
  return {Act::Start};
}

Handover::Step Handover::could_not_start() {
  if (phase_ != Phase::Starting) return {};
  return give_up(Phase::Idle, "start", "the program could not be started");
}

void Handover::heard(std::string_view line) {
  constexpr std::string_view kPid = "pid ";
  if (line == "checked") checked_ = true;
  if (line == "ready") ready_ = true;
  if (line.starts_with(kPid)) pid_ = read_pid(line.substr(kPid.size()));
}

Handover::Step Handover::lost() {
  if (phase_ != Phase::Starting) return {};
  return give_up(Phase::Idle, "ended", "it ended before it was ready");
}

Handover::Step Handover::looked(Clock::time_point now, bool ready) {
  if (phase_ != Phase::Starting) return {};
  if (pid_ && (ready_ || (checked_ && !ready))) return {Act::HandOver};
  if (now < deadline_) return {};
  return give_up(Phase::Idle, "timeout",
                 checked_ ? "it could not serve within restart_timeout"
                          : "it was not ready within restart_timeout");
}

Handover::Step Handover::stopped() {
  const bool starting = phase_ == Phase::Starting;
  phase_ = Phase::Over;
  if (!starting) return {};
  return give_up(Phase::Over, "stopped", "the process was told to end meanwhile");
}

Handover::Step Handover::give_up(Phase next, std::string_view kind, std::string_view why) {
  phase_ = next;
  return {Act::GiveUp, kind, why};
}

}  // namespace baton::app
