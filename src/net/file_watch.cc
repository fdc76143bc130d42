// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/file_watch.h"

#include "net/file_way.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace baton::net {
namespace {

using Clock = std::chrono::steady_clock;

// Identifies one state of a file; all zero if the file does not exist.
struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  time_t seconds = 0;
  long nanoseconds = 0;
  bool operator==(const Stamp&) const = default;
};

Stamp stamp_of(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.string();
}

constexpr std::uint32_t kNames = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t kContent = IN_MODIFY | IN_ATTRIB;

}  // namespace

// Role. State kept alive by pending handlers, so that the watch may be destroyed before them.
// Invariants. `watched_` says of each watch which names count in that directory; none: it is the
//   file itself.
class FileWatch::State : public std::enable_shared_from_this<State> {
 public:
  State(boost::asio::io_context& io, const std::string& path, std::function<void()> changed)
      : path_(absolute(path)), changed_(std::move(changed)), notices_(io), quiet_(io), poll_(io) {}

  Result<void> start() {
    Result<void> result;
    const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (descriptor >= 0) {
      notices_.assign(descriptor);
      wait_for_notices();
    } else {
      result = fail(Errc::Internal,
                    fmt::format("no notice of changes of {} can be had ({}); it is looked at every "
                                "{} ms instead. Raise fs.inotify.max_user_instances",
                                path_, std::strerror(errno), kPoll.count()));
    }
    watch();
    stamp_ = stamp_of(path_);
    return result;
  }

  void stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    notices_.close(ignored);
    quiet_.cancel();
    poll_.cancel();
  }

 private:
  void wait_for_notices() {
    notices_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this()](boost::system::error_code error) {
                          if (error || self->stopped_) return;
                          self->read_notices();
                          self->wait_for_notices();
                        });
  }

  void read_notices() {
    alignas(inotify_event) std::array<char, 16 * 1024> buffer;
    // A busy directory must not block the thread: the rest is read next time.
    const ssize_t size = ::read(notices_.native_handle(), buffer.data(), buffer.size());
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      take(event, event.len == 0 ? std::string_view() : std::string_view(name));
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }

  void take(const inotify_event& event, std::string_view name) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) return touch(true);
    const auto watched = watched_.find(event.wd);
    if (watched == watched_.end()) return;  // about a watch that was given up
    const std::set<std::string, std::less<>>& names = watched->second;
    if (names.empty()) return touch((event.mask & kContent) != 0);
    // Without a name it is about the directory itself.
    if (name.empty() || names.contains(name)) touch(false);
  }

  // Something happened; `surely` where it was the file's content, which a stamp need not show: two
  // writes can fall into one tick of the file system's clock.
  void touch(bool surely) {
    surely_ = surely_ || surely;
    const auto now = Clock::now();
    if (!first_) first_ = now;
    quiet_.expires_at(std::min(now + kQuiet, *first_ + kLongest));
    quiet_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error && !self->stopped_) self->look();
    });
  }

  void look() {
    first_.reset();
    const bool surely = std::exchange(surely_, false);
    watch();
    // After the watches are set: later changes give a notice.
    const Stamp stamp = stamp_of(path_);
    const bool differs = std::exchange(stamp_, stamp) != stamp;
    if (surely || differs) changed_();
  }

  // Sets the watches that the way to the file asks for now. It may change meanwhile, so it is walked
  // until it stays the same.
  void watch() {
    constexpr int kTries = 4;
    bool complete = false;
    FileWay way = find_way(path_);
    for (int i = 0; i < kTries && !complete; ++i) {
      complete = set_watches(way);
      FileWay again = find_way(path_);
      if (again == way) break;
      complete = false;
      way = std::move(again);
    }
    if (!complete) poll_later();
  }

  bool set_watches(const FileWay& way) {
    if (!notices_.is_open()) return false;
    bool complete = true;
    decltype(watched_) wanted;
    const auto add = [&](const std::filesystem::path& path, std::uint32_t mask) {
      const int watch = ::inotify_add_watch(notices_.native_handle(), path.c_str(), mask);
      if (watch < 0) complete = false;
      return watch;
    };
    for (const FileWay::Step& step : way.steps) {
      if (const int watch = add(step.directory, kNames); watch >= 0) {
        wanted[watch].insert(step.name);
      }
    }
    if (!way.file.empty()) {
      if (const int watch = add(way.file, kContent); watch >= 0) wanted[watch];
    }
    for (const auto& [watch, names] : watched_) {
      if (!wanted.contains(watch)) ::inotify_rm_watch(notices_.native_handle(), watch);
    }
    watched_ = std::move(wanted);
    return complete;
  }

  void poll_later() {
    poll_.expires_after(kPoll);
    poll_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error && !self->stopped_) self->look();
    });
  }

  const std::string path_;
  const std::function<void()> changed_;
  boost::asio::posix::stream_descriptor notices_;
  boost::asio::steady_timer quiet_;
  boost::asio::steady_timer poll_;
  std::map<int, std::set<std::string, std::less<>>> watched_;
  Stamp stamp_;
  bool surely_ = false;
  std::optional<Clock::time_point> first_;  // of the notices that are waited out
  bool stopped_ = false;
};

FileWatch::FileWatch(boost::asio::io_context& io, std::string path, std::function<void()> changed)
    : state_(std::make_shared<State>(io, std::move(path), std::move(changed))) {}

FileWatch::~FileWatch() { stop(); }

Result<void> FileWatch::start() { return state_->start(); }

void FileWatch::stop() { state_->stop(); }

}  // namespace baton::net
