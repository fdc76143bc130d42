// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/snapshot_file.h"

#include "core/regular_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace baton::kvcache {
namespace {

// Only the owner may read which prompts were computed where.
constexpr mode_t kMode = 0600;
// Far above the size of any index.
constexpr std::size_t kMostBytes = std::size_t{64} << 30;

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags, kMode)) {}
  ~File() {
    if (is_open()) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  bool is_regular() const {
    struct stat about{};
    return ::fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode);
  }
  bool sync() const { return ::fsync(descriptor_) == 0; }
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

 private:
  int descriptor_;
};

Error problem(std::string_view what, const std::string& path) {
  const int code = errno;
  return {Errc::Internal,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(code))};
}

}  // namespace

Result<std::vector<HolderSnapshot>> read_snapshot_file(const std::string& path) {
  const auto bytes = read_regular_file(path, kMostBytes);
  if (!bytes) {
    return fail(Errc::Internal, fmt::format("cannot read {}: {}", path, bytes.error().message()));
  }
  if (!*bytes) return {};
  return decode_snapshot(**bytes);
}

Result<std::size_t> write_snapshot_file(const std::string& path,
                                        std::span<const HolderSnapshot> holders) {
  const std::string bytes = encode_snapshot(holders);
  const std::string unfinished = path + ".tmp";
  {
    // A pipe of that name is not waited for.
    const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC);
    if (!file.is_open()) return fail(problem("write", unfinished));
    if (!file.is_regular()) {
      return fail(Errc::Internal, fmt::format("cannot write {}: not a regular file", unfinished));
    }
    if (!file.write(bytes) || !file.sync()) {
      auto error = problem("write", unfinished);
      ::unlink(unfinished.c_str());
      return fail(std::move(error));
    }
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    auto error = problem("write", path);
    ::unlink(unfinished.c_str());
    return fail(std::move(error));
  }
  // The new name is there after a crash only if its folder has been written, too.
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const File directory(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!directory.is_open() || !directory.sync()) return fail(problem("write", folder));
  return bytes.size();
}

}  // namespace baton::kvcache
