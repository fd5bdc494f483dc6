# Engines on Nomad. The database's URL is a variable of Nomad: nomad var put nomad/jobs/stint url=postgres://…
# Clients need max_kill_timeout = "60s" or more: their default of 30s would kill engines in the middle of a stop.
job "stint" {
  type = "service"

  update {
    max_parallel     = 1
    health_check     = "checks"
    min_healthy_time = "10s"
    healthy_deadline = "5m"
    auto_revert      = true
  }

  group "engine" {
    count = 2

    network {
      port "health" { to = 9070 }
    }

    service {
      name     = "stint-engine"
      port     = "health"
      provider = "nomad"

      check {
        type     = "http"
        path     = "/readyz"
        interval = "5s"
        timeout  = "5s"
      }
    }

    # Each allocation brings the schema up to date before its engine starts; one of them does it.
    task "migrate" {
      driver = "docker"

      lifecycle {
        hook    = "prestart"
        sidecar = false
      }

      config {
        image = "ghcr.io/stint-go/stint:0.1.0"
        args  = ["migrate", "up"]
      }

      template {
        data        = "STINT_DB={{ with nomadVar \"nomad/jobs/stint\" }}{{ .url }}{{ end }}"
        destination = "secrets/stint.env"
        env         = true
      }
    }

    task "engine" {
      driver       = "docker"
      kill_signal  = "SIGTERM"
      kill_timeout = "60s" # the grace, and what the rest of a stop takes

      config {
        image = "ghcr.io/stint-go/stint:0.1.0"
        args  = ["work"]
        ports = ["health"]
      }

      env {
        STINT_KINDS        = "http"
        STINT_GRACE        = "30s"
        STINT_HEALTH       = ":9070"
        STINT_MEMORY_LIMIT = "400MiB"
        STINT_LOG_FORMAT   = "json"
      }

      template {
        data        = "STINT_DB={{ with nomadVar \"nomad/jobs/stint\" }}{{ .url }}{{ end }}"
        destination = "secrets/stint.env"
        env         = true
      }

      resources {
        cpu    = 500
        memory = 512
      }
    }
  }
}
