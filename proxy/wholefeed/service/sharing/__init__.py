"""How the replicas that share one store divide its work; a process that is alone divides nothing."""
