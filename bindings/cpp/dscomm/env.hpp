// SPDX-License-Identifier: BSD-3-Clause
// The identity of this process, from its launcher, without a job.
#ifndef DSCOMM_ENV_HPP
#define DSCOMM_ENV_HPP

#include <dscomm/error.hpp>

namespace dscomm
{

namespace detail
{

struct FreeEnv {
    void operator()(dscomm_env_t *env) const noexcept
    {
        dscomm_env_free(env);
    }
};

} // namespace detail

// The result of a discovery. A number that is unknown is -1.
class Env
{
  public:
    explicit Env(const dscomm_env_attr_t *attr = nullptr)
    {
        dscomm_env_t *env = nullptr;
        check(dscomm_env_discover(attr, &env));
        env_.reset(env);
    }
    dscomm_env_t *get() const noexcept
    {
        return env_.get();
    }

    // Throws if the environment is invalid, which attr->tolerate permits.
    void status() const
    {
        check(dscomm_env_status(get()));
    }
    int rank() const noexcept
    {
        return dscomm_env_rank(get());
    }
    int world_size() const noexcept
    {
        return dscomm_env_world_size(get());
    }
    int local_rank() const noexcept
    {
        return dscomm_env_local_rank(get());
    }
    int local_size() const noexcept
    {
        return dscomm_env_local_size(get());
    }
    int node_rank() const noexcept
    {
        return dscomm_env_node_rank(get());
    }
    // "" and -1 if unknown, for which check_master() throws
    const char *master_addr() const noexcept
    {
        return dscomm_env_master_addr(get());
    }
    int master_port() const noexcept
    {
        return dscomm_env_master_port(get());
    }
    void check_master() const
    {
        check(dscomm_env_check_master(get()));
    }
    bool agent_store() const noexcept
    {
        return dscomm_env_agent_store(get());
    }
    const char *job() const noexcept
    {
        return dscomm_env_job(get());
    }
    const char *source() const noexcept
    {
        return dscomm_env_source(get());
    }
    // Where a value is from; NULL if it is unknown
    const char *origin(dscomm_env_field_t field) const noexcept
    {
        return dscomm_env_origin(get(), field);
    }
    // Sets RANK, WORLD_SIZE and the others that torch reads.
    void set_variables() const
    {
        check(dscomm_env_export(get()));
    }

  private:
    std::unique_ptr<dscomm_env_t, detail::FreeEnv> env_;
};

} // namespace dscomm

#endif
