// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/regular_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace baton {
namespace {

// A file that grows while it is read has room to.
constexpr std::size_t kMore = std::size_t{64} << 10;

class Descriptor {
 public:
  // Without O_NONBLOCK, opening a pipe would block until a writer opens it.
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (is_open()) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

std::unexpected<Error> cannot(std::string why) {
  return fail(Errc::InvalidRequest, std::move(why));
}

std::unexpected<Error> cannot(int error) { return cannot(std::generic_category().message(error)); }

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "directory";
  if (S_ISFIFO(mode)) return "pipe";
  if (S_ISSOCK(mode)) return "socket";
  return "device";
}

std::string shown_size(std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return bytes % kMiB == 0 ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} bytes", bytes);
}

}  // namespace

Result<std::optional<std::string>> read_regular_file(const std::string& path, std::size_t most) {
  const Descriptor file(path);
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    if (errno == ENXIO) return cannot("it is a socket or a device, not a regular file");
    return cannot(errno);
  }
  struct stat about{};
  if (::fstat(file.number(), &about) != 0) return cannot(errno);
  if (!S_ISREG(about.st_mode)) {
    return cannot(fmt::format("it is a {}, not a regular file", kind_of(about.st_mode)));
  }
  const auto too_large = [&] { return cannot("it is larger than " + shown_size(most)); };
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size > most) return too_large();
  std::string text(size + 1, '\0');  // one more: its end shows by a read that finds nothing
  std::size_t done = 0;
  for (;;) {
    if (done == text.size()) text.resize(done + kMore);
    const ssize_t count = ::read(file.number(), text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return cannot(errno);
    if (count == 0) break;
    if (count > 0) done += static_cast<std::size_t>(count);
    if (done > most) return too_large();
  }
  text.resize(done);
  return text;
}

}  // namespace baton
