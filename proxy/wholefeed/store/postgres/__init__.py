"""PostgreSQL, shared by replicas. Nothing here is imported unless `store.url` names such a database."""
