// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How a router follows another one, and is followed: see Successor and Predecessor.
#include "api/readiness.h"
#include "app/router.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

using std::chrono::steady_clock;

// Time for engines to confirm the known contents of their caches, once all else is ready.
constexpr std::chrono::seconds kIndexWait{2};

}  // namespace

// Serves when its predecessor has left, and not before.
boost::asio::awaitable<void> Router::follow() {
  co_await predecessor_->wait([this] { return progress(); });
  predecessor_.reset();
  if (!services_.draining) open();
}

Predecessor::Progress Router::progress() {
  if (services_.draining) return Predecessor::Progress::Ended;
  const auto members = services_.fleet.members();
  const bool checked = std::ranges::none_of(members, [](const fleet::Fleet::Member& member) {
    return member.worker->condition() == fleet::Condition::New;
  });
  if (!checked) return Predecessor::Progress::Starting;
  const bool told = std::ranges::all_of(source_states(), &fleet::SourceStatus::well);
  if (!told || !is_ready()) return Predecessor::Progress::Checked;
  if (!could_serve_since_) could_serve_since_ = steady_clock::now();
  const bool index =
      feeds_.has_taken_up() || steady_clock::now() - *could_serve_since_ > kIndexWait;
  return index ? Predecessor::Progress::Ready : Predecessor::Progress::Starting;
}

bool Router::is_ready() const {
  return api::readiness_of(services_.fleet, source_states(), services_.draining).ready;
}

void Router::start_successor(std::vector<std::string> command) {
  successor_ = std::make_unique<Successor>(
      control_, tasks_, std::move(command), services_.config.restart_timeout,
      Successor::Hooks{.objection = [this] { return why_no_restart(); },
                       .save = [this] { return feeds_.save_snapshot(); },
                       .sockets = [this] { return listening_; },
                       .ready = [this] { return is_ready(); },
                       .own_file = [this](bool own) { feeds_.own_snapshot(own); },
                       .handed_over = [this] { hand_over(); }},
      services_.metrics, log_);
}

std::string_view Router::why_no_restart() const {
  if (services_.draining) return "the process is about to end";
  if (!open_) return "the process has not taken over itself yet";
  if (::getpid() == 1) return "it is process 1 of its container, which ends with it";
  return {};
}

// Nothing is hurried: clients and streams are this process' for as long as they like, and a signal to
// end still has a bound.
void Router::hand_over() {
  handed_over_ = true;
  if (admin_) admin_->retire();
  for (auto& thread : threads_) thread->retire();
  wait_for_tasks(steady_clock::time_point::max(), &Router::end);
}

}  // namespace baton::app
