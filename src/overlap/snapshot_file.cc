// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "overlap/snapshot_file.h"

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

namespace baton::overlap {
namespace {

// Whose prompts were computed where is nobody else's business.
constexpr mode_t kMode = 0600;

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags, kMode)) {}
  ~File() {
    if (is_open()) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  bool sync() const { return ::fsync(descriptor_) == 0; }
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool read(std::string& bytes) const {
    struct stat about{};
    if (::fstat(descriptor_, &about) != 0) return false;
    bytes.resize(static_cast<std::size_t>(about.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::read(descriptor_, bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno != EINTR) return false;
      if (count == 0) break;
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
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

Result<std::vector<kvindex::HolderSnapshot>> read_snapshot_file(const std::string& path) {
  const File file(path, O_RDONLY | O_CLOEXEC);
  if (!file.is_open() && errno == ENOENT) return {};
  std::string bytes;
  if (!file.is_open() || !file.read(bytes)) return fail(problem("read", path));
  return kvindex::decode_snapshot(bytes);
}

Result<std::size_t> write_snapshot_file(const std::string& path,
                                        std::span<const kvindex::HolderSnapshot> holders) {
  const std::string bytes = kvindex::encode_snapshot(holders);
  const std::string unfinished = path + ".tmp";
  {
    const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    if (!file.is_open()) return fail(problem("write", unfinished));
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

}  // namespace baton::overlap
