// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/successor.h"

#include "app/inheritance.h"
#include "app/sd_notify.h"
#include "net/await.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

using boost::asio::awaitable;

// How often the successor is listened to.
constexpr std::chrono::milliseconds kListenEvery{20};

constexpr std::array<std::string_view, 4> kKinds{"start", "ended", "timeout", "stopped"};

telemetry::Counter& failures(telemetry::Registry& metrics, std::string_view kind) {
  return metrics.counter("baton_restart_failures_total",
                         "Restarts (SIGUSR2) whose new process did not take over, by what was "
                         "wrong with it.",
                         {{"reason", std::string(kind)}});
}

// The timestamp that systemd requires with RELOADING=1.
std::int64_t monotonic_usec() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

std::string outcome(int status) {
  if (WIFEXITED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return {};
}

}  // namespace

Successor::Successor(boost::asio::io_context& io, net::TaskGroup& tasks,
                     std::vector<std::string> command, std::chrono::milliseconds timeout,
                     Hooks hooks, telemetry::Registry& metrics, telemetry::Logger& log)
    : metrics_(metrics),
      log_(log),
      tasks_(tasks),
      command_(std::move(command)),
      hooks_(std::move(hooks)),
      signals_(io, SIGUSR2),
      timer_(io),
      handover_(timeout) {
  for (const std::string_view kind : kKinds) failures(metrics_, kind);
}

void Successor::start() { await_signal(); }

void Successor::await_signal() {
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    act(handover_.asked(hooks_.objection()));
    await_signal();
  });
}

void Successor::give_up() { act(handover_.stopped()); }

void Successor::stop() {
  give_up();
  signals_.cancel();
  timer_.cancel();
}

awaitable<void> Successor::attempt() {
  co_await hooks_.save();
  act(handover_.saved(Handover::Clock::now()));
  while (channel_) {
    timer_.expires_after(kListenEvery);
    co_await timer_.async_wait(net::kAwait);
    if (channel_) look();
  }
}

void Successor::look() {
  for (const std::string& line : channel_->receive()) handover_.heard(line);
  act(channel_->ended() ? handover_.lost()
                        : handover_.looked(Handover::Clock::now(), hooks_.ready()));
}

void Successor::act(const Handover::Step& step) {
  switch (step.act) {
    case Handover::Act::Nothing:
      return;
    case Handover::Act::Refuse:
      log_.warning("restart_refused", {{"reason", step.why}});
      return;
    case Handover::Act::Save:
      log_.info("restart_begun", {{"program", command_.front()}});
      notify_service_manager(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_usec()));
      tasks_.spawn(attempt());
      return;
    case Handover::Act::Start:
      launch();
      return;
    case Handover::Act::HandOver:
      hand_over();
      return;
    case Handover::Act::GiveUp:
      end_process(step);
      return;
  }
}

void Successor::launch() {
  std::array<int, 2> ends{};
  std::string problem;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    problem = std::generic_category().message(errno);
  } else {
    channel_ = std::make_unique<LineChannel>(ends[0]);
    std::vector<Handed> handed = hooks_.sockets();
    handed.push_back({std::string(kChannelName), ends[1]});
    const auto started = start_process(command_, handed);
    ::close(ends[1]);
    if (started) {
      child_ = *started;
      return;
    }
    problem = started.error().message();
  }
  log_.error("restart_not_started", {{"error", problem}});
  act(handover_.could_not_start());
}

void Successor::hand_over() {
  // Before it may write there.
  hooks_.own_file(false);
  if (!channel_->send("go")) {
    hooks_.own_file(true);
    act(handover_.lost());
    return;
  }
  handover_.handed_over();
  ::waitpid(child_, nullptr, 0);  // it ended when the successor left it
  child_ = 0;
  channel_.reset();
  const pid_t successor = *handover_.pid();
  log_.info("handed_over", {{"successor", std::int64_t{successor}}});
  notify_service_manager(fmt::format("MAINPID={}\nREADY=1", successor));
  hooks_.handed_over();
}

void Successor::end_process(const Handover::Step& step) {
  std::string how;
  const auto successor = handover_.pid();
  // A successor whose channel is closed has ended, and its process id may be reused.
  if (successor && channel_ && !channel_->ended()) ::kill(*successor, SIGKILL);
  if (child_ != 0) {
    int status = 0;
    ::kill(child_, SIGKILL);
    if (::waitpid(child_, &status, 0) == child_ && !successor) how = outcome(status);
  }
  child_ = 0;
  channel_.reset();
  timer_.cancel();
  failures(metrics_, step.kind).add();
  log_.error("restart_failed", {{"kind", step.kind}, {"reason", step.why}, {"ended_with", how}});
  notify_service_manager("READY=1");
}

}  // namespace baton::app
