// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/log_queue.h"

#include "libs/locks/mutex.h"

#include <climits>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
#include <utility>

namespace baton::telemetry {
namespace {

// The most whole lines that a pipe takes in one piece; a longer line goes alone.
std::string_view first_piece(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text;
  std::size_t end = text.rfind('\n', PIPE_BUF - 1);
  if (end == std::string_view::npos) end = text.find('\n');
  return text.substr(0, end + 1);
}

bool write_whole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);  // another user of the descriptor made it non-blocking
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Returns how many lines could not be written.
std::uint64_t write_lines(int descriptor, std::string_view text) {
  std::uint64_t lost = 0;
  while (!text.empty()) {
    const std::string_view piece = first_piece(text);
    if (!write_whole(descriptor, piece)) {
      lost += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
    }
    text.remove_prefix(piece.size());
  }
  return lost;
}

}  // namespace

// Shared with the writer, which may outlive the queue.
struct LogQueue::State {
  Options options;
  Notice notice;
  std::shared_ptr<Counter> dropped;

  locks::Mutex mutex;
  locks::ConditionVariable work;
  locks::ConditionVariable rest;  // nothing is left, or the writer has ended
  std::string waiting GUARDED_BY(mutex);
  std::uint64_t untold GUARDED_BY(mutex) = 0;  // dropped since the last notice
  bool writing GUARDED_BY(mutex) = false;
  bool closed GUARDED_BY(mutex) = false;

  bool idle() const REQUIRES(mutex) { return waiting.empty() && !writing; }
  // Waits for that, but not for ever. Returns whether it is.
  bool wait_until_idle() REQUIRES(mutex) {
    const auto end = std::chrono::steady_clock::now() + options.last_words;
    while (!idle() && rest.wait_until(mutex, end) == std::cv_status::no_timeout) continue;
    return idle();
  }
};

LogQueue::LogQueue(Options options, Notice notice, std::shared_ptr<Counter> dropped)
    : state_(std::make_shared<State>()) {
  state_->options = options;
  state_->notice = std::move(notice);
  state_->dropped = std::move(dropped);
  writer_ = std::thread([state = state_] {
    pthread_setname_np(pthread_self(), "baton-log");
    write_until_closed(*state);
  });
}

LogQueue::~LogQueue() {
  bool written = false;
  {
    const locks::Lock lock(state_->mutex);
    state_->closed = true;
    state_->work.notify_one();
    written = state_->wait_until_idle();
  }
  if (written) {
    writer_.join();
  } else {
    writer_.detach();  // held up in a write that nothing but the reader can end
  }
}

void LogQueue::push(std::string_view line) {
  State& state = *state_;
  const locks::Lock lock(state.mutex);
  if (line.size() > state.options.capacity - state.waiting.size()) {
    ++state.untold;
    state.dropped->add();
    return;
  }
  if (state.waiting.empty()) state.work.notify_one();
  state.waiting.append(line);
}

void LogQueue::flush() {
  const locks::Lock lock(state_->mutex);
  state_->wait_until_idle();
}

void LogQueue::write_until_closed(State& state) {
  std::string lines;
  for (;;) {
    std::uint64_t untold = 0;
    {
      const locks::Lock lock(state.mutex);
      while (state.waiting.empty() && !state.closed) state.work.wait(state.mutex);
      if (state.waiting.empty()) return;
      lines.clear();
      lines.swap(state.waiting);
      untold = std::exchange(state.untold, 0);
      state.writing = true;
    }
    const std::uint64_t lost = write_lines(state.options.descriptor, lines);
    if (lost > 0) state.dropped->add(lost);
    untold += lost;
    // The notice follows the lines that were queued before the loss. If it fails, a later one
    // tries.
    if (untold > 0 && write_whole(state.options.descriptor, state.notice(untold))) untold = 0;
    const locks::Lock lock(state.mutex);
    state.writing = false;
    state.untold += untold;
    if (state.waiting.empty()) state.rest.notify_all();
  }
}

}  // namespace baton::telemetry
